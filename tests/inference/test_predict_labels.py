"""`cadr predict` on data that have labels: it compares them."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.cli.predict import _compared
from cadr.inference.predict import Predicted, predict_file
from tests.data.loose import open_data
from tests.report.own_runs import COLUMNS, NAMES, TINY, by_hand, read_csv, table, write_csv, write_images


def test_known_labels_are_compared(trees, tmp_path, capsys):
    x, truth = table(30, seed=2)
    wrong = (truth + 1) % 3
    labels = ["" if i < 10 else NAMES[truth[i]] if i < 20 else NAMES[wrong[i]] for i in range(30)]
    data = write_csv(tmp_path / "new.csv", [*COLUMNS, "label"], [[*x[i], labels[i]] for i in range(30)])
    assert main(["predict", str(trees), str(data), "--out", str(tmp_path / "p.csv")]) == 0
    found = read_csv(tmp_path / "p.csv")
    assert [row["row"] for row in found] == [str(i) for i in range(30)]
    assert [row["label"] for row in found] == labels
    for row in found:
        expected = "" if not row["label"] else "no" if row["label"] == row["predicted"] else "yes"
        assert row["disagrees"] == expected
    disagreements = sum(row["disagrees"] == "yes" for row in found)
    assert disagreements >= 8
    assert f"Of 20 labels the model disagrees with {disagreements}" in capsys.readouterr().out


def test_numbers_mean_the_classes_that_their_file_names(trees, tmp_path):
    x, truth = table(30, seed=7)
    order = np.array([2, 0, 1])  # class k of the model is number order[k] in the file
    names = np.empty(3, dtype=NAMES.dtype)
    names[order] = NAMES
    for y in (order[truth], np.where(np.arange(30) < 5, np.nan, order[truth])):
        np.savez(tmp_path / "new.npz", x=x, y=y, class_names=names)
        found = predict_file(trees, str(tmp_path / "new.npz"), tmp_path / "p.csv", device="cpu")
        rows = read_csv(tmp_path / "p.csv")
        known = ~np.isnan(y)
        assert [row["label"] for row in rows] == np.where(known, NAMES[truth], "").tolist()
        wrong = (by_hand(trees, x).argmax(1) != truth) & known
        assert (found.labelled, found.disagreements) == (known.sum(), wrong.sum())
        assert found.disagreements < 5


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_class_that_the_model_lacks_is_a_disagreement(trees, tmp_path, capsys, suffix):
    parquet = pytest.importorskip("pyarrow.parquet")
    x, truth = table(12, seed=8)
    labels = np.where(np.arange(12) < 3, "elm", np.where(np.arange(12) < 6, "", NAMES[truth]))
    data = write_csv(tmp_path / "new.csv", [*COLUMNS, "label"], [[*x[i], labels[i]] for i in range(12)])
    out = tmp_path / f"p.{suffix}"
    assert main(["predict", str(trees), str(data), "--out", str(out)]) == 0
    rows = read_csv(out) if suffix == "csv" else parquet.read_table(out).to_pylist()
    assert [row["label"] or "" for row in rows] == labels.tolist()
    expected = labels[:, None] == NAMES[by_hand(trees, x).argmax(1)][:, None]
    assert [row["disagrees"] in ("yes", True) for row in rows] == ((labels != "") & ~expected[:, 0]).tolist()
    said = capsys.readouterr().out
    assert f"Of 9 labels the model disagrees with {((labels != '') & ~expected[:, 0]).sum()}" in said
    assert "Among them are 3 whose label is not a class of the model: 'elm'." in said


def test_the_labels_of_a_benchmark_are_compared_by_name(squares, tmp_path, capsys):
    """Ten digits are none of two squares; as indices, 2 to 9 would be beyond the classes, and 0 and 1 be squares."""
    found = predict_file(squares, "digits", tmp_path / "p.csv", device="cpu")
    rows = read_csv(tmp_path / "p.csv")
    assert [row["label"] for row in rows] == open_data("digits").labels.astype(str).tolist()
    assert found.disagreements == found.lacking.total() == len(rows)


def test_labels_may_stand_in_another_column(squares, trees, tmp_path, capsys):
    write_images(tmp_path / "new", 4)
    write_csv(tmp_path / "new" / "labels.csv", ["file", "kind"], [["001.png", "light"], ["002.png", "light"]])
    predict = ["predict", str(squares), str(tmp_path / "new"), "--out", str(tmp_path / "p.csv")]
    assert main(predict) == 2
    assert "--label-column" in capsys.readouterr().err
    assert main([*predict, "--label-column", "kind"]) == 0
    assert [row["label"] for row in read_csv(tmp_path / "p.csv")] == ["", "light", "light", ""]
    data = write_csv(tmp_path / "new.csv", [*COLUMNS, "kind"], [[16, 10, 10, "ash"]])
    predict = ["predict", str(trees), str(data), "--out", str(tmp_path / "p.csv"), "--label-column"]
    assert main([*predict, "kind"]) == 0
    assert read_csv(tmp_path / "p.csv")[0]["label"] == "ash"
    assert main([*predict, "sort"]) == 2
    assert "has no labels in a column 'sort'" in capsys.readouterr().err


def test_of_its_own_labels_a_model_can_judge_those_held_out(trees, tmp_path, capsys):
    """Also in a copy of the data, but not where rows are in another order, or labels are others."""
    held_out = json.loads((trees / "validation.json").read_text())["rows"]
    own = trees.parent / "trees.csv"
    rows = read_csv(own)
    predicted = NAMES[by_hand(trees, table(90)[0]).argmax(1)]
    wrong = [bool(row["label"]) and row["label"] != name for row, name in zip(rows, predicted, strict=True)]
    disagreements = sum(wrong[i] for i in held_out)
    other = str(NAMES[(NAMES.tolist().index(rows[0]["label"]) + 1) % 3])
    changed = [rows[0] | {"label": other}, *rows[1:]]
    for name, others in {"turned": rows[::-1], "changed": changed, "fewer": rows[:-1], "copy": rows}.items():
        data = write_csv(tmp_path / f"{name}.csv", list(rows[0]), [list(row.values()) for row in others])
        capsys.readouterr()
        assert main(["predict", str(trees), str(data), "--out", str(tmp_path / "p.csv")]) == 0
        said = capsys.readouterr().out
        assert ("Of 45 labels the model disagrees with" in said) == (name != "copy"), name
        assert ("It repeats labels that it was trained on, right or wrong" in said) == (name != "copy"), name
    assert f"Of {len(held_out)} labels held out the model disagrees with {disagreements}" in said
    trained = f"Of {45 - len(held_out)} labels that it was trained on it disagrees with {sum(wrong) - disagreements}, "
    assert trained + "but it repeats such labels whether they are right or wrong: cadr report" in said


def test_labels_beside_a_folder_are_its_own_too(squares, tmp_path):
    folder = squares.parent
    found = predict_file(
        squares, str(folder / "squares"), tmp_path / "p.csv", labels=folder / "labels.csv", device="cpu"
    )
    assert found.held_out is not None
    assert (found.labelled, found.held_out.labels) == (16, 4)  # a fifth of eight labels of either class, rounded


def test_with_none_held_out_all_labels_were_trained_on(tmp_path, capsys):
    x, truth = table(30)
    np.savez(tmp_path / "own.npz", x=x, y=np.where(np.arange(30) < 20, truth, -1))
    data = [str(tmp_path / "own.npz")]
    assert main(["train", *data, "--validation", "0", *TINY, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "run"), *data, "--out", str(tmp_path / "p.csv")]) == 0
    said = capsys.readouterr().out
    assert "Of 20 labels that it was trained on it disagrees with" in said
    assert "held out the model disagrees" not in said


def test_the_command_that_shows_more_can_be_copied():
    found = Predicted(9, 3, 1, Counter(), {}, "", {}, None)
    assert _compared(found, Path("my run"))[-1].endswith("see cadr report 'my run'.")
