"""The figures: what is drawn stands where it should, everything is escaped, and all of it is said in words."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadr.errors import shortened
from cadr.report.charts import (
    Bar,
    Bin,
    Extent,
    Series,
    bars,
    calibration_error,
    extent_of,
    lines,
    matrix,
    reliability,
    reliability_diagram,
    round_ticks,
    short,
    tag,
)
from cadr.report.names import fit
from cadr.report.sections import PANELS, Classes

HOSTILE = """<script>alert(1)</script>&"'"""


def parsed(markup):
    return ElementTree.fromstring(str(markup))


def described(figure):
    return figure.find("desc").text


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 100, 5, [0, 20, 40, 60, 80, 100]),
        (0, 35, 4, [0, 10, 20, 30]),
        (7, 86, 5, [20, 40, 60, 80]),
        (0.2, 0.2, 3, [0.2]),
        (0, 131072, 5, [0, 50000, 100000]),
    ],
)
def test_ticks_are_round_and_inside(low, high, most, expected):
    ticks = round_ticks(low, high, most)
    assert all(low - 1e-9 <= t <= high + 1e-9 for t in ticks)
    assert 1 <= len(ticks) <= 2 * most
    assert ticks == pytest.approx(expected)


def test_numbers_on_axes_are_short():
    assert [short(v) for v in (0, 0.25, 95.0, 1500, 20000, 1.5e6)] == ["0", "0.25", "95", "1500", "20k", "1.5M"]


def test_long_names_are_cut_in_the_middle():
    assert shortened("short", 5) == "short"
    cut = [shortened(f"a rather long class name {i}", 14) for i in range(100)]
    assert cut[7] == "a rathe…name 7"
    assert len(set(cut)) == 100
    assert {len(c) for c in cut} == {14}
    assert shortened("abc", 1) == "…"


def test_everything_from_outside_is_escaped():
    assert HOSTILE not in tag("text", HOSTILE, title=HOSTILE)
    assert parsed(tag("text", HOSTILE, title=HOSTILE)).attrib["title"] == HOSTILE
    figures = [
        lines(HOSTILE, [Series(HOSTILE, 0, [(0, 1.0), (5, 2.0)])], Extent(5, 0, 2)),
        bars(HOSTILE, [HOSTILE], [[Bar(1.0, "labelled")]], [HOSTILE], str),
        matrix(HOSTILE, [HOSTILE, "b"], [[1, 2], [3, 4]]),
        reliability_diagram(HOSTILE, [Bin(0.5, 0.5, 3)]),
    ]
    for figure in figures:
        assert "<script" not in figure
        assert parsed(figure).find("title").text == HOSTILE


def test_a_line_breaks_where_there_is_no_value_and_ends_at_the_last():
    series = Series("run", 2, [(0, 0.0), (10, 50.0), (20, None), (30, 100.0), (40, 25.0)])
    figure = parsed(lines("Recall", [series], Extent(40, 0, 100), " %"))
    path = next(e for e in figure.iter("path")).attrib["d"]
    assert path.count("M") == 2
    assert path.count("L") == 2
    numbers = [
        tuple(map(float, part[1:].split())) for part in path.replace("L", "|L").replace("M", "|M").split("|")[1:]
    ]
    xs, ys = zip(*numbers, strict=True)
    assert xs == tuple(sorted(xs))
    assert ys[2] < ys[1] < ys[3] < ys[0]  # 100, 50, 25, 0 from the top down
    circle = next(figure.iter("circle"))
    assert (float(circle.attrib["cx"]), float(circle.attrib["cy"])) == pytest.approx(numbers[-1], abs=0.1)
    assert "run: from 0 to 25 %, between 0 and 100 %" in described(figure)


def test_a_curve_without_values_is_said_to_have_none():
    figure = parsed(lines("P", [Series("run", 0, [(0, None)])], extent_of([Series("run", 0, [(0, None)])])))
    assert "no values" in described(figure)
    assert "no values" in [e.text for e in figure.iter("text")]
    assert next(iter(figure.iter("path"))).attrib["d"] == ""


def test_bars_are_as_long_as_their_values_and_say_their_intervals():
    figure = parsed(
        bars(
            "Shares",
            ["a", "b"],
            [[Bar(10.0, "labelled")], [Bar(20.0, "estimated", (15.0, 30.0))]],
            ["share"],
            "{:g}".format,
        )
    )
    first, second = (float(r.attrib["width"]) for r in figure.iter("rect"))
    assert second == pytest.approx(2 * first, abs=0.02)  # as it is written
    assert described(figure) == "Bar chart. a: share 10; b: share 20 (between 15 and 30)."
    assert any(e.attrib["class"] == "whisker" for e in figure.iter("path"))


def test_bars_on_a_logarithmic_axis():
    groups = [[Bar(v, "estimated")] for v in (0.01, 0.1, 1.0)]
    figure = parsed(bars("φ", ["a", "b", "c"], groups, ["φ"], "{:g}".format, log=True))
    widths = [float(r.attrib["width"]) for r in figure.iter("rect")]
    assert widths[2] - widths[1] == pytest.approx(widths[1] - widths[0], abs=2)
    assert "not known" in described(parsed(bars("φ", ["a"], [[Bar(None, "estimated")]], ["φ"], str, log=True)))


def test_a_confusion_matrix_shades_by_the_share_of_the_row():
    figure = parsed(matrix("Confusion", ["ant", "bee"], [[3, 1], [0, 0]]))
    cells = [e for e in figure.iter("rect") if e.attrib["class"] == "heat"]
    assert [float(c.attrib["fill-opacity"]) for c in cells] == [0.75, 0.25, 0, 0]
    assert cells[1].find("title").text == "ant predicted as bee: 1 of 4"
    assert described(figure) == (
        "Confusion matrix of 4 examples, 3 of them right. Most frequent mistakes: ant taken for bee 1 times."
    )


def test_long_names_stand_upright_over_their_columns():
    names = [f"digit {i}" for i in range(10)]
    written = list(parsed(matrix("Confusion", names, np.eye(10, dtype=int).tolist())).iter("text"))
    turned = [e for e in written if "rotate" in e.attrib.get("transform", "")]
    assert [e.text for e in turned] == names  # whole: nothing is cut, nothing runs together
    short = parsed(matrix("Confusion", ["a", "b"], [[1, 0], [0, 1]]))
    assert not any("transform" in e.attrib for e in short.iter("text"))


def test_a_hundred_classes_fit():
    figure = parsed(matrix("Confusion", [str(i) for i in range(100)], np.eye(100, dtype=int).tolist()))
    assert sum(1 for e in figure.iter("rect") if e.attrib["class"] == "heat") == 10_000
    assert len(list(figure.iter("text"))) == 2


def test_of_many_classes_those_with_the_fewest_labels_get_a_panel():
    names, counts = tuple(f"class {c}" for c in range(40)), [(7 * c) % 40 for c in range(40)]
    assert [counts[c] for c in Classes(names, counts).shown] == list(range(PANELS))
    assert Classes(names, None).shown == list(range(PANELS))


def test_classes_come_by_their_bias_where_it_is_known():
    classes = Classes(("a", "b", "c", "d"), (9, 1, 5, 3), (0.2, None, 0.1, 0.9))
    assert classes.order == [2, 0, 3, 1]  # the one that nobody knows last
    assert "labelled most seldom" in classes.by
    assert Classes(("a", "b", "c"), (9, 1, 5), (None, None, None)).order == [1, 2, 0]


def test_figures_stand_beside_their_bar_and_not_on_a_whisker():
    groups = [[Bar(20.0, "estimated", (5.0, 90.0))], [Bar(90.0, "estimated", (80.0, 95.0))]]
    figure = parsed(bars("Shares", ["a", "b"], groups, ["share"], "{:g} %".format))
    values = [e for e in figure.iter("text") if e.attrib.get("class") == "value"]
    start = min(float(r.attrib["x"]) for r in figure.iter("rect"))
    assert [e.text for e in values] == ["20 %", "90 %"]
    assert all(start - 8 <= float(e.attrib["x"]) < start for e in values)
    assert {e.attrib["text-anchor"] for e in values} == {"end"}


def test_names_break_between_words():
    assert fit(["golden retriever", "weather and climate change"], 14, 2) == [
        ("golden", "retriever"),
        ("weather and", "climate change"),
    ]
    assert fit(["comp.os.ms-windows.misc"], 14, 2) == [("comp.os.ms-", "windows.misc")]
    assert fit(["a very long name of a class"], 12, 1) == [("a very long…",)]


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize(
    "names",
    [
        [f"a rather long class name {i}" for i in range(30)],
        [f"{i} " + "long " * 20 + "end" for i in range(30)],
        [f"{'x' * 40}{i}{'y' * 40}" for i in range(30)],
        ["International business machines", "International business people", "business", "International"],
    ],
)
def test_no_two_names_look_alike_when_they_are_cut(names, most):
    found = fit(names, 14, most)
    assert len(set(found)) == len(names)
    assert all(len(shown) <= most and all(0 < len(line) <= 14 for line in shown) for shown in found)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=12), st.integers(6, 20), st.integers(1, 3))
def test_any_names_fit(names, width, most):
    found = fit(names, width, most)
    assert len(found) == len(names)
    assert all(len(shown) <= most and all(len(line) <= width for line in shown) for shown in found)


def test_reliability_counts_what_is_right_at_each_confidence():
    confidence = np.array([0.05, 0.95, 0.96, 1.0, 0.55])
    right = np.array([False, True, True, False, True])
    bins = reliability(confidence, right)
    assert [b.size for b in bins] == [1, 1, 3]
    assert bins[2].right == pytest.approx(2 / 3)
    assert bins[2].confidence == pytest.approx(0.97)
    by_hand = (1 * 0.05 + 1 * 0.45 + 3 * abs(0.97 - 2 / 3)) / 5
    assert calibration_error(bins) == pytest.approx(by_hand)
    assert math.isclose(sum(b.size for b in bins), 5)


def test_intervals_are_a_band_about_the_curve_and_said_in_words():
    band = [(10.0, 20.0, 40.0), (30.0, 25.0, 35.0)]
    series = [Series("run", 2, [(10.0, 30.0), (30.0, 30.0)], band)]
    extent = extent_of(series, low=0.0)
    assert extent.high >= 40.0
    figure = parsed(lines("Shares", series, extent._replace(high=50.0), " %"))
    (drawn,) = [path for path in figure.iter() if path.get("class") == "band"]
    points = [tuple(map(float, point.split())) for point in drawn.get("d")[1:-1].split("L")]
    assert len(points) == 4
    (x0, low0), (x1, low1), (x2, high1), (x3, high0) = points
    assert (x0, x1) == (x3, x2)
    assert x0 < x1
    assert high0 < high1 < low1 < low0  # downwards on the page
    line = next(path for path in figure.iter() if path.get("class") == "line").get("d")
    assert min(high0, high1) < float(line.split()[-1]) < max(low0, low1)
    assert "its last interval from 25 to 35 %" in described(figure)
