"""The table of what to label: those that the model is least sure of, in a form that can be filled in and read again."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cadr.cli.main import main
from cadr.data import open_data
from cadr.report.query import least_sure
from cadr.report.query_export import MOST
from tests.report import own_runs


def test_least_sure_is_where_the_two_best_classes_are_nearest():
    probabilities = np.array([[0.6, 0.3, 0.1], [0.5, 0.0, 0.5], [0.4, 0.35, 0.25], [0.0, 1.0, 0.0]])
    assert least_sure(probabilities).tolist() == [1, 2, 0, 3]


def report(run: Path, page: Path, table: Path) -> int:
    return main(["report", str(run), "--out", str(page), "--to-label", str(table), "--device", "cpu"])


def test_the_least_sure_come_first_and_only_unlabelled_ones(squares, tmp_path, capsys):
    assert report(squares, tmp_path / "page.html", tmp_path / "ask.csv") == 0
    assert f"What to label is in {tmp_path / 'ask.csv'}" in capsys.readouterr().out
    asked = own_runs.read_csv(tmp_path / "ask.csv")
    assert sorted(line["file"] for line in asked) == [f"{i:03}.png" for i in range(16, 40)]
    assert {line["label"] for line in asked} == {""}
    assert all({line["guess"], line["guess_2"]} == {"dark", "light"} for line in asked)
    apart = [float(line["probability"]) - float(line["probability_2"]) for line in asked]
    assert apart == pytest.approx(sorted(apart), abs=2e-4)


def test_a_hundred_are_enough(tmp_path):
    run = ["train", "digits", "--protocol", "longtail", "--n-max", "20", "--gamma", "20", "--model", "mlp"]
    assert main([*run, *own_runs.TINY, "--out", str(tmp_path / "run")]) == 0
    assert report(tmp_path / "run", tmp_path / "page.html", tmp_path / "ask.csv") == 0
    asked = own_runs.read_csv(tmp_path / "ask.csv")
    assert len({line["row"] for line in asked}) == len(asked) == MOST


def test_filled_in_it_is_a_table_of_labels(squares, tmp_path):
    assert report(squares, tmp_path / "page.html", tmp_path / "ask.csv") == 0
    asked = own_runs.read_csv(tmp_path / "ask.csv")
    for line in asked[:23]:
        line["label"] = "light" if int(line["file"][:3]) % 2 else "dark"
    with (tmp_path / "filled.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(asked[0]))
        table.writeheader()
        table.writerows(asked)
    pool = open_data(str(squares.parent / "squares"), labels=str(tmp_path / "filled.csv"))
    assert int((np.asarray(pool.labels) >= 0).sum()) == 23


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_the_documentation_adds_it_to_labels_even_as_a_spreadsheet_saves_it(sign, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    code: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], code)
    given, filled_in, more = (tmp_path / name for name in ("labels.csv", "ask.csv", "more.csv"))
    given.write_text("file,label\n1.png,dark\n".replace(",", sign), encoding="utf-8")
    rows = [["file", "label", "guess"], ["2,a.png", "light", "dark"], ["3.png", "", "dark"]]
    with filled_in.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=sign).writerows(rows)
    code["add"](given, filled_in, more)
    assert more.read_text(encoding="utf-8").splitlines() == ["file,label", "1.png,dark", '"2,a.png",light']


def test_rows_of_a_table_go_by_what_identifies_them(tmp_path):
    run = own_runs.table_run(tmp_path)
    assert report(run, tmp_path / "page.html", tmp_path / "ask.csv") == 0
    asked = own_runs.read_csv(tmp_path / "ask.csv")
    assert sorted(line["id"] for line in asked) == [f"tree-{i}" for i in range(45, 90)]
    assert {line["guess"] for line in asked} <= set(own_runs.NAMES)


def test_rows_without_an_identifier_can_be_found_as_well(tmp_path):
    run = own_runs.table_run(tmp_path)
    data = tmp_path / "trees.csv"
    data.write_text(data.read_text(encoding="utf-8").replace("tree-45,", ","), encoding="utf-8")
    assert report(run, tmp_path / "page.html", tmp_path / "ask.csv") == 0
    asked = {line["id"] for line in own_runs.read_csv(tmp_path / "ask.csv")}
    assert asked == {"row 45", *(f"tree-{i}" for i in range(46, 90))}


def test_rows_that_share_an_identifier_are_told_apart_by_their_number(tmp_path, capsys):
    run, ask = own_runs.table_run(tmp_path), tmp_path / "ask.csv"
    assert report(run, tmp_path / "page.html", ask) == 0
    assert "counted from 0" not in capsys.readouterr().out
    ask.unlink()
    data = tmp_path / "trees.csv"
    text = data.read_text(encoding="utf-8").replace("tree-45,", ",").replace("tree-50,", "tree-3,")
    data.write_text(text.replace("tree-60,", "tree-61,"), encoding="utf-8")
    assert report(run, tmp_path / "page.html", ask) == 0
    assert f"in {ask} the column `row`, counted from 0, says which row is meant." in capsys.readouterr().out
    asked = own_runs.read_csv(ask)
    assert list(asked[0]) == ["id", "row", "label", "guess", "probability", "guess_2", "probability_2"]
    renamed = {45: "row 45", 50: "tree-3", 60: "tree-61"}
    assert {int(line["row"]): line["id"] for line in asked} == {i: f"tree-{i}" for i in range(45, 90)} | renamed
    assert report(run, tmp_path / "page.html", ask) == 0  # still blank
    ask.write_text(ask.read_text(encoding="utf-8").replace(",,", ",ash,", 1), encoding="utf-8")
    assert report(run, tmp_path / "page.html", ask) == 2
    assert "ask.csv is there already" in capsys.readouterr().err


def test_labels_that_were_given_are_not_written_over(squares, tmp_path, capsys):
    given = squares.parent / "labels.csv"
    before = given.read_bytes()
    assert report(squares, tmp_path / "page.html", given) == 2
    assert "is what the run was trained on" in capsys.readouterr().err
    assert given.read_bytes() == before
    assert not (tmp_path / "page.html").exists()


def test_nor_by_the_page(squares, tmp_path, capsys):
    given = squares.parent / "labels.csv"
    before = given.read_bytes()
    assert main(["report", str(squares), "--out", str(given), "--device", "cpu"]) == 2
    assert "is what the run was trained on" in capsys.readouterr().err
    assert given.read_bytes() == before


@pytest.mark.parametrize("sign", [",", ";"])
def test_labels_that_were_filled_in_are_not_written_over(squares, tmp_path, capsys, sign):
    """A table that is still blank makes way for a newer one, and nothing else does."""
    ask, page = tmp_path / "ask.csv", tmp_path / "page.html"
    ask.touch()  # as mktemp does
    assert report(squares, page, ask) == 0
    ask.write_text("\ufeff" + ask.read_text(encoding="utf-8").replace(",", sign), encoding="utf-8")  # a spreadsheet's
    assert report(squares, page, ask) == 0
    page.unlink()
    blank = ask.read_text(encoding="utf-8").replace(",", sign)
    picture = (squares.parent / "squares" / "000.png").read_bytes()
    filled_in = blank.replace(sign * 2, f"{sign}dark{sign}", 1)
    for there in (filled_in.encode(), b"file,label\n", b"my_" + blank.encode(), picture):
        ask.write_bytes(there)
        assert report(squares, page, ask) == 2
        assert "ask.csv is there already" in capsys.readouterr().err
        assert ask.read_bytes() == there
        assert not page.exists()


def test_the_table_and_the_page_are_two_files(squares, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    for page, table, sentence in [
        (tmp_path / "one", tmp_path / "folder" / ".." / "one", "is to be the page"),
        (tmp_path / "page.html", tmp_path / "folder", "is a folder"),
    ]:
        assert report(squares, page, table) == 2
        assert sentence in capsys.readouterr().err
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_page_that_looked_at_none_does_not_say_that_all_have_labels(squares, tmp_path):
    assert main(["report", str(squares), "--rows", "0", "--out", str(tmp_path / "page.html"), "--device", "cpu"]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "No unlabelled example was looked at" in page
    assert "Every example has a label." not in page


def test_where_nothing_is_to_be_labelled_no_table_is_written(squares, tmp_path, capsys):
    outs = ["--out", str(tmp_path / "page.html"), "--to-label", str(tmp_path / "ask.csv"), "--device", "cpu"]
    assert main(["report", str(squares), "--rows", "0", *outs]) == 2
    assert "No unlabelled example was looked at" in capsys.readouterr().err
    own_runs.write_images(tmp_path / "pictures", 16)
    labels = squares.parent / "labels.csv"
    flags = ["--labels", str(labels), "--algorithm", "supervised", *own_runs.TINY, "--out", str(tmp_path / "run")]
    assert main(["train", str(tmp_path / "pictures"), *flags]) == 0
    assert main(["report", str(tmp_path / "run"), *outs]) == 2
    assert "Every example has a label." in capsys.readouterr().err
    assert not (tmp_path / "ask.csv").exists()


def test_several_runs_ask_together(squares, tmp_path, capsys):
    """For what the mean of their predictions is least sure of."""
    flags = ["--labels", str(squares.parent / "labels.csv"), *own_runs.TINY, "--seed", "5", "--validation", "0.2"]
    assert main(["train", str(squares.parent / "squares"), *flags, "--out", str(tmp_path / "other")]) == 0
    runs, found = [squares, tmp_path / "other"], []
    for i, chosen in enumerate([runs[:1], runs[1:], runs]):
        outs = ["--out", str(tmp_path / "page.html"), "--to-label", str(tmp_path / f"{i}.csv"), "--device", "cpu"]
        assert main(["report", *map(str, chosen), *outs]) == 0
        table = own_runs.read_csv(tmp_path / f"{i}.csv")
        light = [float(line["probability" if line["guess"] == "light" else "probability_2"]) for line in table]
        found.append(dict(zip((line["file"] for line in table), light, strict=True)))
    shared = sorted(found[0].keys() & found[1].keys() & found[2].keys())
    assert len(shared) > 10
    for file in shared:
        assert found[2][file] == pytest.approx((found[0][file] + found[1][file]) / 2, abs=2e-4)


def test_what_cannot_be_asked_is_one_sentence(squares, tmp_path, capsys):
    other = own_runs.write_images(tmp_path / "squares", 40)
    Image.fromarray(255 - other[20]).save(tmp_path / "squares" / "020.png")
    (tmp_path / "labels.csv").write_text((squares.parent / "labels.csv").read_text())
    arguments = ["--labels", str(tmp_path / "labels.csv"), *own_runs.TINY, "--out", str(tmp_path / "run")]
    assert main(["train", str(tmp_path / "squares"), *arguments]) == 0
    two = ["report", str(squares), str(tmp_path / "run"), "--to-label", str(tmp_path / "ask.csv")]
    assert main([*two, "--out", str(tmp_path / "page.html")]) == 2
    assert "can be asked of one run, or of several on the same data and labels." in capsys.readouterr().err
    assert (tmp_path / "page.html").exists()
    (tmp_path / "squares").rename(tmp_path / "moved")
    assert report(tmp_path / "run", tmp_path / "page.html", tmp_path / "ask.csv") == 2
    error = capsys.readouterr().err
    assert f"but {tmp_path / 'ask.csv'} is not. The data or the model of run" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "ask.csv").exists()
