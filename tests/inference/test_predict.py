"""`cadr predict` from the outside: what is written, in which order, and that it is what the model says."""

import json
import os
import shutil
import sys
import tracemalloc

import numpy as np
import pytest
import torch

from cadr.cli.main import main
from cadr.data.sources import csv_table
from cadr.inference.predict import predict_file
from cadr.inference.predictor import Predictor
from tests.report.own_runs import COLUMNS, NAMES, by_hand, image_run, read_csv, table, write_csv, write_images


def test_a_table_in_another_order_of_columns_with_other_columns_beside(trees, tmp_path, capsys):
    x, truth = table(50, seed=1)
    header = ["r", "note", "p", "id", "q"]
    rows = [[x[i, 2], f'a "quoted", note {i}', x[i, 0], 900 - i, x[i, 1]] for i in range(50)]
    data = write_csv(tmp_path / "new.csv", header, rows)
    assert main(["predict", str(trees), str(data), "--out", str(tmp_path / "p.csv"), "--top", "2"]) == 0
    found = read_csv(tmp_path / "p.csv")
    assert list(found[0]) == ["note", "id", "predicted", "probability", "predicted_2", "probability_2"]
    assert [row["id"] for row in found] == [str(900 - i) for i in range(50)]
    assert [row["note"] for row in found] == [f'a "quoted", note {i}' for i in range(50)]
    expected = by_hand(trees, x)
    order = np.argsort(-expected, axis=1)
    assert [row["predicted"] for row in found] == NAMES[order[:, 0]].tolist()
    assert [row["predicted_2"] for row in found] == NAMES[order[:, 1]].tolist()
    top = np.take_along_axis(expected, order, axis=1)
    np.testing.assert_allclose([float(row["probability"]) for row in found], top[:, 0], atol=2e-6)
    np.testing.assert_allclose([float(row["probability_2"]) for row in found], top[:, 1], atol=2e-6)
    assert (np.array([row["predicted"] for row in found]) == NAMES[truth]).mean() > 0.9
    assert "50 rows" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "sign"), [("new.csv", ";"), ("new.csv", "\t"), ("new.tsv", "\t")])
def test_a_table_with_another_separator(trees, tmp_path, name, sign):
    x, _ = table(20, seed=4)
    rows = [[f"tree, {i}", *x[i].tolist()] for i in range(20)]
    text = "".join(sign.join(map(str, row)) + "\n" for row in [["id", *COLUMNS], *rows])
    (tmp_path / name).write_text(text)
    assert main(["predict", str(trees), str(tmp_path / name), "--out", str(tmp_path / "p.csv")]) == 0
    found = read_csv(tmp_path / "p.csv")
    assert [row["id"] for row in found] == [f"tree, {i}" for i in range(20)]
    assert [row["predicted"] for row in found] == NAMES[by_hand(trees, x).argmax(1)].tolist()


def test_parquet_in_and_out_keeps_types(trees, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x, truth = table(40, seed=3)
    labels = [None if i % 2 else str(NAMES[truth[i]]) for i in range(40)]
    columns = {"when": pa.array(range(40), pa.timestamp("ms")), **dict(zip(COLUMNS, x.T, strict=True)), "label": labels}
    parquet.write_table(pa.table(columns), tmp_path / "new.parquet")
    for name in ("p.parquet", "p.csv"):
        assert main(["predict", str(trees), str(tmp_path / "new.parquet"), "--out", str(tmp_path / name)]) == 0
    found = parquet.read_table(tmp_path / "p.parquet")
    assert found.schema.field("when").type == pa.timestamp("ms")
    assert found.schema.field("probability").type == pa.float32()
    rows, plain = found.to_pylist(), read_csv(tmp_path / "p.csv")
    assert [row["predicted"] for row in rows] == [row["predicted"] for row in plain]
    assert [row["label"] for row in rows] == labels
    assert [row["disagrees"] for row in rows] == [
        None if not row["label"] else row["label"] != row["predicted"] for row in rows
    ]


def test_a_column_called_row_keeps_what_it_holds(trees, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    x, _ = table(3)
    data = write_csv(tmp_path / "new.csv", ["row", *COLUMNS], [[f"r{i}", *x[i]] for i in range(3)])
    assert main(["predict", str(trees), str(data), "--out", str(tmp_path / "p.parquet")]) == 0
    assert parquet.read_table(tmp_path / "p.parquet").column("row").to_pylist() == ["r0", "r1", "r2"]
    np.save(tmp_path / "new.npy", x)
    assert main(["predict", str(trees), str(tmp_path / "new.npy"), "--out", str(tmp_path / "p.parquet")]) == 0
    assert parquet.read_table(tmp_path / "p.parquet").column("row").to_pylist() == [0, 1, 2]


def test_python_reads_a_csv_as_arrow_does(trees, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    x, truth = table(300, seed=4)
    rows = [[f"line\n{i}", *x[i], NAMES[truth[i]]] for i in range(300)]
    data = write_csv(tmp_path / "new.csv", ["id", *COLUMNS, "label"], rows)
    predict_file(trees, str(data), tmp_path / "arrow.csv", device="cpu")
    monkeypatch.setattr(csv_table, "ROWS", 64)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    predict_file(trees, str(data), tmp_path / "python.csv", device="cpu")
    assert (tmp_path / "arrow.csv").read_text() == (tmp_path / "python.csv").read_text()
    assert [row["id"] for row in read_csv(tmp_path / "python.csv")] == [f"line\n{i}" for i in range(300)]


def test_truth_values_are_numbers_as_in_training(trees, tmp_path):
    x, _ = table(6, seed=5)
    found = []
    for name, yes, no in [("words.csv", "True", "FALSE"), ("numbers.csv", "1", "0")]:
        rows = [[x[i, 0], yes if i % 2 else no, x[i, 2]] for i in range(6)]
        data = write_csv(tmp_path / name, COLUMNS, rows)
        predict_file(trees, str(data), tmp_path / f"p-{name}", device="cpu")
        found.append((tmp_path / f"p-{name}").read_text())
    assert found[0] == found[1]


def test_arrays(trees, tmp_path):
    x, truth = table(20, seed=5)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "xy.npz", x=x.astype(np.float64), y=NAMES[truth])
    predict_file(trees, str(tmp_path / "x.npy"), tmp_path / "a.csv", device="cpu")
    found = predict_file(trees, str(tmp_path / "xy.npz"), tmp_path / "b.csv", device="cpu")
    a, b = read_csv(tmp_path / "a.csv"), read_csv(tmp_path / "b.csv")
    assert "label" not in a[0]
    assert [row["label"] for row in b] == NAMES[truth].tolist()
    assert [(r["row"], r["predicted"], r["probability"]) for r in a] == [
        (r["row"], r["predicted"], r["probability"]) for r in b
    ]
    assert (found.rows, found.labelled) == (20, 20)
    np.save(tmp_path / "y.npy", truth)
    write_csv(tmp_path / "y.csv", ["row", "label"], [[i, NAMES[truth[i]]] for i in range(20)])
    for name in ("y.npy", "y.csv"):
        predict_file(trees, str(tmp_path / "x.npy"), tmp_path / "c.csv", labels=tmp_path / name, device="cpu")
        assert read_csv(tmp_path / "c.csv") == b


def test_the_best_classes_are_in_order_with_the_probability_of_each(trees, tmp_path):
    x, _ = table(30, seed=6)
    np.save(tmp_path / "x.npy", x)
    predict_file(trees, str(tmp_path / "x.npy"), tmp_path / "p.csv", top=9, device="cpu")  # there are only three
    probabilities = by_hand(trees, x)
    order = np.argsort(-probabilities, axis=1)
    for i, row in enumerate(read_csv(tmp_path / "p.csv")):
        assert list(row) == ["row", *(f"{w}{k}" for k in ("", "_2", "_3") for w in ("predicted", "probability"))]
        for k, suffix in enumerate(("", "_2", "_3")):
            assert row[f"predicted{suffix}"] == NAMES[order[i, k]]
            assert float(row[f"probability{suffix}"]) == pytest.approx(probabilities[i, order[i, k]], abs=1e-5)


def test_images_by_name_with_and_without_labels(squares, tmp_path):
    images = write_images(tmp_path / "new" / "light", 6)
    write_images(tmp_path / "new" / "elsewhere", 2)
    (tmp_path / "new" / "elsewhere" / "._000.png").write_bytes(b"Mac OS X")
    found = predict_file(squares, str(tmp_path / "new"), tmp_path / "p.csv", device="cpu")
    rows = read_csv(tmp_path / "p.csv")
    assert [row["file"] for row in rows][:3] == ["elsewhere/000.png", "elsewhere/001.png", "light/000.png"]
    assert [row["label"] for row in rows] == ["", "", *["light"] * 6]  # a folder that is called like a class
    assert found.labelled == 6
    p = Predictor.load(squares, device="cpu").probabilities(images)
    np.testing.assert_allclose([float(r["probability"]) for r in rows[2:]], p.max(1).values.numpy(), atol=1e-6)


def test_one_picture(squares, trees, tmp_path, capsys):
    folder = squares.parent / "squares"
    assert main(["predict", str(squares), str(folder), "--out", str(tmp_path / "all.csv")]) == 0
    (expected,) = [row for row in read_csv(tmp_path / "all.csv") if row["file"] == "007.png"]
    predict = ["predict", str(squares), str(folder / "007.png"), "--out", str(tmp_path / "one.csv")]
    assert main(predict) == 0
    (found,) = read_csv(tmp_path / "one.csv")
    assert found["predicted"] == expected["predicted"] == "light"
    assert float(found["probability"]) == pytest.approx(float(expected["probability"]), abs=1e-5)
    assert found["file"] == "007.png"
    capsys.readouterr()
    assert main([*predict, "--labels", str(squares.parent / "labels.csv")]) == 2
    assert "007.png is one picture; --labels is for a folder" in capsys.readouterr().err
    assert main(["predict", str(trees), *predict[2:]]) == 2
    assert "is a picture, but the model was trained on a table" in capsys.readouterr().err


def test_images_of_another_size_are_resized_where_training_did(tmp_path):
    run = image_run(tmp_path, "--image-size", "10")
    write_images(tmp_path / "large", 4, size=20)
    assert predict_file(run, str(tmp_path / "large"), tmp_path / "p.csv", device="cpu").rows == 4


def test_a_file_name_that_is_no_utf8(squares, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    write_images(tmp_path / "new", 1)
    (tmp_path / "new" / "000.png").rename(tmp_path / "new" / os.fsdecode(b"caf\xe9.png"))
    predict = ["predict", str(squares), str(tmp_path / "new"), "--out"]
    assert main([*predict, str(tmp_path / "p.csv")]) == 0
    assert (tmp_path / "p.csv").read_bytes().splitlines()[1].startswith(b"caf\xe9.png,")
    assert main([*predict, str(tmp_path / "p.parquet")]) == 2
    assert "caf\\udce9.png' is no UTF-8" in capsys.readouterr().err


def test_an_uncalibrated_run_says_so(tmp_path, capsys):
    x, truth = table(40)
    np.savez(tmp_path / "mine.npz", x=x, y=np.where(np.arange(40) < 30, truth, -1))
    steps = ["--steps", "4", "--batch", "4", "--ratio", "1", "--evaluations", "1", "--validation", "0"]
    assert main(["train", str(tmp_path / "mine.npz"), *steps, "--out", str(tmp_path / "run")]) == 0
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "mine.npz"), "--out", str(tmp_path / "p.csv")]) == 0
    assert (
        "The probabilities are not calibrated: that takes a finished run with held-out labels."
        in capsys.readouterr().out
    )
    assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "report.html")]) == 0
    assert "The probabilities are not calibrated: that takes a finished run with held-out labels." in (
        tmp_path / "report.html"
    ).read_text().replace("&#39;", "'")


def test_labels_that_are_too_few_to_calibrate_on_are_said(trees, tmp_path, capsys):
    x, _ = table(5)
    data = write_csv(tmp_path / "new.csv", COLUMNS, x.tolist())
    assert main(["predict", str(trees), str(data), "--out", str(tmp_path / "p.csv")]) == 0
    examples = json.loads((trees / "calibration.json").read_text())["examples"]
    words = f"{examples} held-out labels cannot show whether the model is overconfident"
    assert words in capsys.readouterr().out
    assert main(["report", str(trees), "--out", str(tmp_path / "report.html")]) == 0
    assert words in (tmp_path / "report.html").read_text()


def test_nothing_is_left_behind_by_a_mistake(trees, tmp_path, monkeypatch):
    x, _ = table(40)
    rows = [[*row] for row in x.tolist()]
    rows[-1][1] = "many"
    data = write_csv(tmp_path / "new.csv", COLUMNS, rows)
    monkeypatch.setattr(csv_table, "ROWS", 8)
    (tmp_path / "out").mkdir()
    assert main(["predict", str(trees), str(data), "--out", str(tmp_path / "out" / "p.csv")]) == 2
    assert list((tmp_path / "out").iterdir()) == []


def test_the_data_are_not_written_over(trees, tmp_path, capsys):
    """A table that was labelled by hand is easily named twice."""
    x, _ = table(4)
    data = write_csv(tmp_path / "new.csv", COLUMNS, x.tolist())
    (tmp_path / "same.csv").symlink_to(data)
    before = data.read_text()
    for out in (data, tmp_path / "same.csv"):
        assert main(["predict", str(trees), str(data), "--out", str(out)]) == 2
        assert f"{out} is what to predict on; write the predictions to another file" in capsys.readouterr().err
    np.save(tmp_path / "x.npy", x)
    labels = write_csv(tmp_path / "labels.csv", ["label"], [["ash"]] * 4)
    assert main(["predict", str(trees), str(tmp_path / "x.npy"), "--labels", str(labels), "--out", str(labels)]) == 2
    assert data.read_text() == before


@pytest.mark.parametrize("elsewhere", [False, True])
def test_nor_is_what_the_run_was_trained_on(trees, elsewhere, tmp_path, capsys, monkeypatch):
    x, _ = table(4)
    data = write_csv(tmp_path / "new.csv", COLUMNS, x.tolist())
    given = trees.parent / "trees.csv"
    if elsewhere:  # the run knows its data by a name from where it was begun
        copied = shutil.copytree(trees.parent, tmp_path / "copy")
        config = copied / "run" / "config.toml"
        config.write_text(config.read_text().replace(str(given), "trees.csv"))
        trees, given = copied / "run", copied / "trees.csv"
        monkeypatch.chdir(tmp_path)
    before = given.read_bytes()
    assert main(["predict", str(trees), str(data), "--out", str(given)]) == 2
    assert f"{given} is what the run was trained on; write to another file" in capsys.readouterr().err
    assert given.read_bytes() == before


def test_nor_are_the_labels_of_its_pictures(squares, tmp_path, capsys):
    write_images(tmp_path / "new", 4)
    given = squares.parent / "labels.csv"
    before = given.read_bytes()
    assert main(["predict", str(squares), str(tmp_path / "new"), "--out", str(given)]) == 2
    assert f"{given} is what the run was trained on" in capsys.readouterr().err
    assert given.read_bytes() == before


def test_memory_does_not_grow_with_the_rows(trees, tmp_path):
    def peak(rows):
        x = np.lib.format.open_memmap(tmp_path / f"{rows}.npy", mode="w+", dtype=np.float32, shape=(rows, 3))
        x.flush()
        tracemalloc.start()
        predict_file(trees, str(tmp_path / f"{rows}.npy"), tmp_path / "p.parquet", device="cpu")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few = peak(50_000)
    assert peak(400_000) < 1.3 * few


def test_a_row_does_not_depend_on_its_neighbours(trees):
    predictor = Predictor.load(trees, device="cpu")
    x, _ = table(100, seed=6)
    alone = torch.cat([predictor.precise(x[i : i + 1]) for i in range(100)])
    np.testing.assert_allclose(alone, predictor.precise(x), atol=1e-12)
