"""The report on real, tiny runs: what it says, what it leaves out and says so, and names that want to break it."""

import dataclasses
import html
import json
import re
import shlex

import numpy as np
import pytest

from cadr.algorithms import FixMatch
from cadr.cli.main import main, parser
from cadr.cli.run_flags import read_flat
from cadr.config import Config, difference
from cadr.data.pool import Pool
from cadr.diagnosis.diagnose import diagnose
from cadr.errors import CheckpointError, ConfigError
from cadr.inference import evaluate_run
from cadr.report import write_report
from cadr.report.runs import command, settings
from cadr.training import train
from tests.report.reports import config, own_pool, plain, written
from tests.training import tiny

HOSTILE = "<img src=x onerror=alert(1)>\"'&\u202e\x07"
BROKEN = "\udcff"  # a byte of a file name that is no UTF-8


def test_a_report_has_every_part(clouds, tmp_path):
    page, problems = written([clouds], tmp_path)
    assert problems == []
    for anchor in ("labels", "learning", "pseudo-labels", "beliefs", "mistakes", "examples", "classes", "settings"):
        assert f'id="{anchor}"' in page, anchor
    for title in (
        "Labelled against estimated distribution",
        "Accuracy over time",
        "Recall of every class over time",
        "Pseudo-label coverage of every class",
        "Pseudo-label precision of every class",
        "Threshold of every class",
        "P̂, the class distribution the model predicts",
        "Confusion matrix",
        "Reliability",
        "Labels that may be wrong",
        "Worth labelling next",
        "How to reproduce",
    ):
        assert title in page, title


def test_its_numbers_are_those_of_the_records(clouds, tmp_path):
    page, _ = written([clouds], tmp_path)
    words = plain(page)
    result = tiny.result(clouds)
    assert f"clouds-cadr cadr {result['last']:.1f} {result['gm']:.1f} {min(result['recall']):.1f} 45 test 60" in words
    last = [r for r in tiny.metrics(clouds) if r["kind"] == "train"][-1]
    for c, name in enumerate(("ant", "bee", "cat")):
        (row,) = re.findall(rf'<th scope="row">{name}</th>(.*?)</tr>', page, re.DOTALL)
        cells = re.findall(r'<td class="n">([^<]*)</td>', row)
        assert cells[0] == "6"
        assert cells[2] == f"{result['recall'][c]:.1f}"
        assert cells[5:] == [f"{last['thresholds'][c]:.3f}", f"{100 * last['prior'][c]:.1f}"]


def test_an_accuracy_on_few_examples_comes_with_its_interval(clouds, tmp_path):
    page, _ = written([clouds], tmp_path)
    assert "It is evaluated on only 45 test examples; the" in page


def test_folders_on_the_way_to_the_page_are_made(clouds, tmp_path):
    write_report([clouds], tmp_path / "new" / "deeper" / "page.html", pool=tiny.pool(), device="cpu")
    assert (tmp_path / "new" / "deeper" / "page.html").exists()


def test_a_page_asks_for_nothing_outside_itself(clouds, tmp_path):
    page, _ = written([clouds], tmp_path)
    assert "<script" not in page
    assert "default-src 'none'" in page
    sources = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert sources
    assert all(source.startswith(("#", "data:")) for source in sources)
    assert "http://" not in page
    assert "https://" not in page


def test_every_drawing_is_said_in_words(clouds, tmp_path):
    page, _ = written([clouds], tmp_path)
    drawings = re.findall(r'<svg role="img".*?</svg>', page, re.DOTALL)
    assert len(drawings) > 15
    for drawing in drawings:
        assert re.search(r"<title>[^<]{3,}</title><desc>[^<]{20,}</desc>", drawing)


def test_several_runs_stand_side_by_side(clouds, tmp_path):
    other = tmp_path / "clouds-fixmatch"
    tiny.finish(dataclasses.replace(config(), algorithm=FixMatch()), other)
    page, _ = written([clouds, other], tmp_path)
    assert "clouds: 2 runs" in page
    words = plain(page)
    assert "clouds-cadr: from" in words
    assert "clouds-fixmatch: from" in words
    assert all(f'<g class="s{style}">' in page for style in (0, 1))  # colours and dashes of their own
    assert page.count("Confusion matrix of clouds-") == 4  # each as a title and in its label
    differing = re.findall(r'<tr class="differs"><th scope="row">(\w+)</th>', page)
    assert "algorithm" in differing
    assert "steps" not in differing
    assert page.count(">accuracy, %</th>") == 1


def test_runs_of_different_lengths_share_no_column(clouds, tmp_path):
    shorter = dataclasses.replace(config(), training=dataclasses.replace(config().training, steps=7))
    tiny.finish(shorter, tmp_path / "shorter")
    page, _ = written([clouds, tmp_path / "shorter"], tmp_path)
    tables = [part.split("</table>")[0] for part in page.split(">accuracy, %</th>")[1:]]
    assert [re.findall(r'<th scope="row">(.+?)</th>', table) for table in tables] == [["shorter"], ["clouds-cadr"]]


def test_names_that_want_to_break_the_page_are_shown_as_they_are(tmp_path):
    pool = tiny.pool()
    names = (HOSTILE, "bee", "<script>alert(2)</script>")
    files = tuple(f"{HOSTILE}{BROKEN}{i}.png" for i in range(len(pool.labels)))
    pool = dataclasses.replace(pool, class_names=names, name=HOSTILE, identifiers=files)
    out = tmp_path / "<b>run</b>"
    tiny.finish(config(), out, pool=pool)
    page, problems = written([out], tmp_path, pool=pool)
    assert problems == []
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "<b>run" not in page
    assert "\u202e" not in page
    assert "\x07" not in page
    assert "<img src=x onerror=alert(1)>\"'&\N{REPLACEMENT CHARACTER}" in html.unescape(page)


def test_pictures_are_shown_as_thumbnails(tmp_path):
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    labels = np.where(np.arange(40) < 20, np.arange(40) % 2, -1)
    files = tuple(f"photos/{i:02}.png" for i in range(40))
    pool = Pool(images, labels, ("cat", "dog"), "photos", identifiers=files)
    tiny.finish(config(steps=10), tmp_path / "run", pool=pool)
    page, _ = written([tmp_path / "run"], tmp_path, pool=pool)
    (next_to_label,) = re.findall(r'<ol class="examples next">(.*?)</ol>', page, re.DOTALL)
    assert next_to_label.count("data:image/png;base64,") == next_to_label.count("<li>") == 12
    assert next_to_label.count("photos/") >= 12
    named = re.findall(r'<span class="file">photos/(\d\d).png</span>', next_to_label)
    assert all(labels[int(i)] == -1 for i in named)


def test_an_unfinished_run_and_missing_data_are_said(tmp_path):
    out = tmp_path / "stopped"
    records = train(config(), out, pool=tiny.pool())
    for record in records:
        if record["step"] >= 30:
            break
    records.close()
    page, _ = written([out], tmp_path)
    assert "stopped is not finished: it is at step 30 of 60." in page
    page, problems = written([out], tmp_path, pool=None)
    assert len(problems) == 1
    assert "clouds is neither a file or folder nor a benchmark" in problems[0]
    assert 'id="examples"' not in page
    assert 'id="learning"' in page


def test_data_that_have_changed_are_said_and_not_looked_at(clouds, tmp_path):
    pool = tiny.pool()
    labels = pool.labels.copy()
    labels[18:24] = np.arange(18, 24) % 3
    page, problems = written([clouds], tmp_path, pool=dataclasses.replace(pool, labels=labels))
    assert len(problems) == 1
    assert "The data have changed since" in problems[0]
    assert "train into a new folder" in problems[0]
    assert "18 of them labelled" in page
    assert 'id="labels"' not in page
    assert 'id="examples"' not in page


def test_figures_of_an_interrupted_run_are_of_its_checkpoint(tmp_path):
    """It was saved after its last evaluation; and a kill leaves records of steps that were never saved."""
    out = tmp_path / "stopped"
    records = train(config(), out, pool=tiny.pool())
    for record in records:
        if record["step"] == 25:  # evaluations are at 20 and 30
            break
    records.close()
    lost = {**tiny.metrics(out)[-2], "kind": "evaluation", "step": 30, "accuracy": 1.25, "gm": 1.25}
    with (out / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(lost) + "\n")
    again = evaluate_run(out, pool=tiny.pool(), device="cpu")
    assert again["step"] == 25
    page, problems = written([out], tmp_path)
    assert problems == []
    figures = f"{again['accuracy']:.1f} {again['gm']:.1f} {min(again['recall']):.1f}"
    assert f"stopped cadr {figures} 45 test 25" in plain(page)
    assert "it is at step 25 of 60" in page


def test_labels_held_out_are_weighted_by_the_propensities_of_the_diagnosis(tmp_path):
    pool, out = own_pool(), tmp_path / "mine"
    tiny.finish(config(), out, pool=pool)
    page, problems = written([out], tmp_path, pool=pool)
    assert problems == []
    words = plain(page)
    assert "18 validation, 2 of 3 classes" in words
    recalls = tiny.result(out)["recall"]
    low, high = sorted(recalls[:2])
    (weighted,) = re.findall(r"so that 2 of 3 classes count as in all rows, accuracy of mine is ([\d.]+) %", words)
    assert low - 0.1 <= float(weighted) <= high + 0.1


UNKNOWN = "Shares and propensities of classes with at most one label cannot be estimated."


@pytest.mark.parametrize(("counts", "known"), [((60, 30, 1), False), ((60, 30, 4), True)])
def test_a_propensity_that_cannot_be_estimated_is_shown_nowhere(counts, known, tmp_path):
    """The run believes one all the same, with which the examples worth labelling are found."""
    pool, out = own_pool(counts), tmp_path / "mine"
    tiny.finish(config(steps=10), out, pool=pool)
    page, _ = written([out], tmp_path, pool=pool)
    for c, name in zip(diagnose(pool).classes, pool.class_names, strict=True):
        (row,) = re.findall(rf'<th scope="row">{name}</th>(.*?)</tr>', page, re.DOTALL)
        shown = re.findall(r'<td class="n">([^<]*)</td>', row)[1]
        assert shown == (f"{100 * (c.propensity or 0.0):.3g}" if known or name != "cat" else "–")
    words = plain(page)
    assert ("cat: propensity not known" in words) is not known
    assert words.count(UNKNOWN) == (0 if known else 3)  # beside both figures, and below the table
    believed = "As φ of classes with at most one label cannot be estimated, it is taken from the run's own P̂."
    assert (believed in words) is not known


def test_pseudo_labels_of_ones_own_data_are_not_judged_on_labels_they_were_trained_on(tmp_path):
    pool, out = own_pool(), tmp_path / "mine"
    tiny.finish(config(steps=10), out, pool=pool)
    page, _ = written([out], tmp_path, pool=pool)
    assert "Pseudo-label" not in page
    assert 'id="pseudo-labels"' not in page
    assert "coverage, %" not in page
    assert "precision, %" not in page
    (row,) = re.findall(r'<th scope="row">ant</th>(.*?)</tr>', page, re.DOTALL)
    last = [r for r in tiny.metrics(out) if r["kind"] == "train"][-1]
    cells = re.findall(r'<td class="n">([^<]*)</td>', row)
    assert cells[3:] == [f"{last['thresholds'][0]:.3f}", f"{100 * last['prior'][0]:.1f}"]


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [((1, 1, 1), "The labels could not be diagnosed: mine: no class has more"), ((100,) * 3, "All rows are labelled.")],
)
def test_labels_that_cannot_be_diagnosed_give_no_ratio(counts, verdict, tmp_path):
    pool, out = own_pool(counts), tmp_path / "mine"
    tiny.finish(config(steps=10), out, pool=pool)
    page, problems = written([out], tmp_path, pool=pool)
    assert problems == []
    words = plain(page)
    assert verdict in words
    assert "times as often" not in words
    assert "propensity, %" not in words
    believed = "As φ of the classes cannot be estimated, it is taken from the run's own P̂."
    assert (believed in words) is (verdict != "All rows are labelled.")
    assert words.count("could not be diagnosed") == (verdict != "All rows are labelled.")


def test_what_is_no_run_is_one_sentence(clouds, tmp_path, capsys):
    with pytest.raises(CheckpointError, match="not a run"):
        write_report([tmp_path], tmp_path / "report.html")
    with pytest.raises(CheckpointError, match="named twice"):
        write_report([clouds, clouds], tmp_path / "report.html")
    with pytest.raises(ConfigError, match="at least one run"):
        write_report([], tmp_path / "report.html")
    other = dataclasses.replace(tiny.pool(), class_names=("ant", "bee", "dog"))
    tiny.finish(config(steps=10), tmp_path / "two", pool=other)
    with pytest.raises(ConfigError, match="the same classes"):
        write_report([clouds, tmp_path / "two"], tmp_path / "report.html", pool=tiny.pool())
    assert main(["report", str(tmp_path / "nothing"), "--out", str(tmp_path / "x.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"algorithm": "fixmatch", "threshold": 0.8, "steps": 7},
        {"data": "my data/it's.csv", "views": "features", "model": "mlp", "hidden": [8, 4], "label_column": "a b"},
        {"protocol": "longtail", "n_max": 7, "gamma": 3.0, "views": "image", "flip": False, "shift": 1, "lr": 0.1},
    ],
)
def test_the_printed_command_makes_the_same_configuration(changes):
    before = Config.from_dict({"data": "digits", "algorithm": "cadr"} | changes)
    _, *arguments = shlex.split(command(before, "runs/x"))
    again = Config.from_dict(read_flat(parser("train").parse_args(arguments)))
    assert difference(before, again) == []


def test_settings_say_where_runs_differ():
    first, second = (Config.from_dict({"data": "digits", "algorithm": "cadr", "lr": lr}) for lr in (0.1, 0.2))
    rows = {name: (values, differs) for name, values, differs in settings([first, second])}
    assert rows["lr"] == (["0.1", "0.2"], True)
    assert rows["algorithm"] == (["cadr", "cadr"], False)
