"""Mistakes that people make with data of their own: one sentence that says which, exit status 2, nothing written."""

import json

import numpy as np
import pytest
from PIL import Image

from cadr.cli.main import main
from tests.report.own_runs import COLUMNS, TINY, table, write_csv, write_images

ROWS = [[float(i), float(i % 3), "" if i > 8 else "yes" if i % 2 else "no"] for i in range(12)]


def failed(capsys, arguments):
    """The sentence that a command ends with."""
    capsys.readouterr()
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("cadr: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


def labelled(rows, labels):
    return [[*row[:-1], label] for row, label in zip(rows, labels, strict=True)]


TABLES = {
    "one class only": (labelled(ROWS, ["yes"] * 12), "at least two classes are needed to classify, got 1"),
    "every label missing": (labelled(ROWS, [""] * 12), "at least two classes are needed to classify, got 0"),
    "a number that is none": ([*ROWS, ["many", 1.0, "yes"]], "line 14, column 'a': expected a number, got 'many'"),
    "a decimal comma": ([*ROWS, ["1,5", 1.0, "yes"]], "got '1,5' (decimals are written with a point)"),
    "NA for a missing label": (labelled(ROWS, ["yes", "no", "NA"] * 4), "label 'NA' looks like a missing one"),
    "nan for a missing label": (labelled(ROWS, ["yes", "no", "nan"] * 4), "label 'nan' looks like a missing one"),
    "a name in every row": (
        [[f"n{i}", *row[1:]] for i, row in enumerate(ROWS)],
        "leave it out with --ignore-columns a",
    ),
    "a column of gaps": ([["NA", *row[1:]] for row in ROWS], "column 'a' has no value in any row; leave it out with"),
    "a number beyond 32 bits": ([*ROWS, ["1e300", 1.0, "yes"]], "1e300 is not a finite number of 32 bits"),
    "a row that is too short": ([*ROWS, [1.0, 2.0]], "line 14: expected 3 cells, got 2"),
    "no rows": ([], "expected rows of features, found 0 rows"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_to_train_on(name, tmp_path, capsys):
    rows, words = TABLES[name]
    data = write_csv(tmp_path / "mine.csv", ["a", "b", "label"], rows)
    out = tmp_path / "run"
    assert words in failed(capsys, ["train", str(data), *TINY, "--out", str(out)])
    assert not (out / "checkpoint").exists()


FLAGS = {
    "another label column": (["--label-column", "kind"], "its columns are 'a', 'b', 'label', by its first line; say"),
    "a column to ignore that is not there": (["--ignore-columns", "id"], "has no column 'id'"),
    "only the label is left": (["--ignore-columns", "a", "b"], "found 12 rows and 0 features"),
    "all labels held out": (["--validation", "1"], "validation must be at least 0 and below 1"),
    "held out without a protocol": (["--held-out", "4"], "held_out needs a protocol"),
    "views for images": (["--views", "image"], "holds features data, so views must be 'features'"),
    "a device that is not there": (["--device", "cuda:99"], "cannot be used here"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_for_a_table(name, tmp_path, capsys):
    flags, words = FLAGS[name]
    data = write_csv(tmp_path / "mine.csv", ["a", "b", "label"], ROWS)
    steps = TINY[:-2] if "--device" in flags else TINY
    assert words in failed(capsys, ["train", str(data), *steps, *flags, "--out", str(tmp_path / "run")])


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_row_numbers_are_no_feature(name, tmp_path, capsys):
    """What pandas' to_csv and R's write.csv put first unless they are told not to."""
    data = write_csv(tmp_path / "mine.csv", [name, "a", "b", "label"], [[i, *row] for i, row in enumerate(ROWS)])
    arguments = ["train", str(data), *TINY, "--out", str(tmp_path / "run")]
    assert f"leave the column out with --ignore-columns '{name}'" in failed(capsys, arguments)
    assert main([*arguments, "--ignore-columns", name]) == 0
    assert main(["predict", str(tmp_path / "run"), str(data), "--out", str(tmp_path / "p.csv")]) == 0
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("0,")


@pytest.mark.parametrize("command", ["train", "compare"])
@pytest.mark.parametrize("model", ["convnet", "resnet-18"])
def test_a_network_for_pictures(command, model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "mine.csv", ["a", "b", "label"], ROWS)
    assert f"{model} looks at pictures, but mine holds features; use mlp" in failed(
        capsys, [command, "mine.csv", *TINY, "--model", model, "--out", "run"]
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv"]


IMAGES = {
    "a file that is not there": ([["000.png", "a"], ["999.png", "b"]], "line 3: '999.png' is not in"),
    "several files that are not there": (
        [["000.png", "a"], ["999.png", "b"], ["001.png", "b"], ["998.jpg", ""]],
        "labels.csv: 2 of the 4 files that it names are not in",
    ),
    "all their names": ([["999.png", "b"], ["001.png", "b"], ["998.jpg", ""]], ": '999.png', '998.jpg'; give names"),
    "a file with two labels": (
        [["000.png", "a"], ["001.png", "b"], ["000.png", "b"]],
        "labels.csv: '000.png' is labelled 'a' in line 2 and 'b' in line 4; keep one line for each file",
    ),
    "several files with two labels": (
        [["000.png", "a"], ["001.png", "b"], ["000.png", "b"], ["001.png", ""], ["000.png", "c"], ["001.png", "b"]],
        "'000.png' is labelled 'a' in line 2 and 'b' in line 4 (and so in 2 more lines); keep one line",
    ),
    "a file elsewhere": ([["../x.png", "a"]], "expected a name relative to"),
    "every label blank": ([["000.png", ""], ["001.png", ""]], "at least two classes"),
    "no label at all": ([], "at least two classes"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_labels_for_a_folder(name, tmp_path, capsys):
    rows, words = IMAGES[name]
    write_images(tmp_path / "photos", 4)
    labels = write_csv(tmp_path / "labels.csv", ["file", "label"], rows)
    arguments = [str(tmp_path / "photos"), "--labels", str(labels), *TINY, "--out", str(tmp_path / "run")]
    assert words in failed(capsys, ["train", *arguments])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: Image.new("RGB", (9, 9)).save(f / "003.png"), "9×9 pixels"),
        (lambda f: (f / "003.png").write_bytes(b"not a picture"), "cannot be decoded as an image"),
        (lambda f: (f / "003.png").write_bytes((f / "002.png").read_bytes()[:60]), "cannot be decoded as an image"),
    ],
    ids=["mixed sizes", "not an image", "half an image"],
)
def test_images_that_do_not_do(change, words, tmp_path, capsys):
    write_images(tmp_path / "photos", 4)
    change(tmp_path / "photos")
    labels = write_csv(tmp_path / "labels.csv", ["file", "label"], [["000.png", "a"], ["001.png", "b"]])
    arguments = [str(tmp_path / "photos"), "--labels", str(labels), *TINY, "--out", str(tmp_path / "run")]
    assert words in failed(capsys, ["train", *arguments])


def new_table(folder, header=("p", "q", "r")):
    x, _ = table(6)
    rows = [list(map(float, row[: len(header)])) for row in x]
    return write_csv(folder / "new.csv", list(header), rows)


def write_npy(folder, array):
    np.save(folder / "new.npy", array)
    return folder / "new.npy"


def write_npz(folder, **arrays):
    np.savez(folder / "new.npz", **arrays)
    return folder / "new.npz"


PREDICTIONS = {
    "a column is missing": (lambda f: new_table(f, ("p", "q")), "lacks 1 of the 3 columns"),
    "other columns": (lambda f: new_table(f, ("a", "b", "c")), "lacks 3 of the 3 columns"),
    "a column that predictions need": (
        lambda f: write_csv(f / "new.csv", [*COLUMNS, "predicted"], [[1.0, 2.0, 3.0, "x"]]),
        "has a column 'predicted' already",
    ),
    "no rows": (lambda f: write_csv(f / "new.csv", COLUMNS, []), "has no rows"),
    "a word among numbers": (
        lambda f: write_csv(f / "new.csv", COLUMNS, [[1.0, 2.0, 3.0], [1.0, "two", 3.0]]),
        "line 3, column 'q': expected a number, got 'two'",
    ),
    "a gap where training had none": (
        lambda f: write_csv(f / "new.csv", COLUMNS, [[1.0, 2.0, 3.0], [1.0, "", 3.0]]),
        "line 3, column 'q': there is no number, and the table that was trained on has one in every row; fill it in",
    ),
    "infinity": (lambda f: write_csv(f / "new.csv", COLUMNS, [[1.0, "inf", 3.0]]), "not a finite number"),
    "an array of another width": (lambda f: write_npy(f, np.zeros((3, 5), np.float32)), "3 features, these are 5"),
    "an array with NaN": (lambda f: write_npy(f, np.full((3, 3), np.nan, np.float32)), "not a finite number"),
    "half a class": (
        lambda f: write_npz(f, x=np.zeros((2, 3), np.float32), y=np.array([0.5, 1.0])),
        "labels[0] is 0.5",
    ),
    "class names that are none": (
        lambda f: write_npz(f, x=np.zeros((2, 3), np.float32), y=np.array([0, 1]), class_names=np.arange(3)),
        "class_names should be a list of strings",
    ),
    "no such array": (lambda f: write_npz(f, z=np.zeros(3)), "expected an array x of examples, found 'z'"),
    "images for a model of tables": (lambda f: write_images(f / "photos", 2) is None or f / "photos", "is a folder"),
    "nothing there": (lambda f: f / "none.csv", "is neither a file or folder nor a benchmark"),
    "a file of another kind": (
        lambda f: (f / "new.docx").write_text("x") and f / "new.docx",
        "expected a folder, a picture, or a",
    ),
    "a text, of a table": (
        lambda f: (f / "new.txt").write_text("x") and f / "new.txt",
        "is a text, but the model was trained on a table of 3 features; give data like those, or a model trained on "
        "texts",
    ),
}


@pytest.mark.parametrize("name", PREDICTIONS)
def test_data_to_predict_on(name, trees, tmp_path, capsys):
    build, words = PREDICTIONS[name]
    data, out = build(tmp_path), tmp_path / "predictions.csv"
    assert words in failed(capsys, ["predict", str(trees), str(data), "--out", str(out)])
    assert not out.exists()


def test_images_of_another_size_to_predict_on(squares, tmp_path, capsys):
    write_images(tmp_path / "large", 3, size=12)
    words = failed(capsys, ["predict", str(squares), str(tmp_path / "large"), "--out", str(tmp_path / "p.csv")])
    assert "trained on images of 8×8 pixels, these are images of 12×12 pixels" in words
    data = new_table(tmp_path)
    words = failed(capsys, ["predict", str(squares), str(data), "--out", str(tmp_path / "p.csv")])
    assert "is a table, but the model was trained on images of 8×8 pixels" in words


def damage(run, copy, name, change):
    """A copy of a run with one file changed."""
    for path in run.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(run)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    change(copy / name)
    return copy


def edit(**changes):
    def change(path):
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


RUNS = {
    "no input.json": ("input.json", lambda p: p.unlink(), "holds no trained run"),
    "half an input.json": ("input.json", lambda p: p.write_text(p.read_text()[:40]), "cannot be used"),
    "classes that are gone": ("input.json", edit(class_names=["a"]), "contradicts itself"),
    "no config.toml": ("config.toml", lambda p: p.unlink(), "holds no config.toml"),
    "a damaged checkpoint": ("checkpoint/part-000.pt", lambda p: p.write_bytes(b"x"), "does not fit its hash"),
    "a checkpoint of another model": (
        "config.toml",
        lambda p: p.write_text(p.read_text().replace("hidden = [128, 128]", "hidden = [64]")),
        "is of another model",
    ),
    "a calibration of other classes": ("calibration.json", edit(correction=[0.0]), "it is of another model"),
    "a calibration that is none": ("calibration.json", lambda p: p.write_text("[1]"), "cannot be used"),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_that_are_none(name, trees, tmp_path, capsys):
    file, change, words = RUNS[name]
    copy, data = damage(trees, tmp_path / "copy", file, change), new_table(tmp_path)
    assert words in failed(capsys, ["predict", str(copy), str(data), "--out", str(tmp_path / "p.csv")])


@pytest.mark.parametrize(
    ("flags", "words"),
    [(["--out", "p.txt"], "ends in .csv or .parquet"), (["--out", "p.csv", "--top", "0"], "top must be at least 1")],
)
def test_flags_of_predict(flags, words, trees, tmp_path, capsys, monkeypatch):
    data = new_table(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert words in failed(capsys, ["predict", str(trees), str(data), *flags])


def test_a_report_on_fewer_rows_than_none(trees, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert "rows must be at least 0, got -5" in failed(
        capsys, ["report", str(trees), "--rows", "-5", "--out", str(out)]
    )
    assert not out.exists()


def test_there_are_enough():
    assert len(TABLES) + len(FLAGS) + len(IMAGES) + len(PREDICTIONS) + len(RUNS) + 3 + 2 + 2 >= 45
