"""Runs on tables with words and gaps: predicted on, judged, continued and exported as they were trained."""

import json
import shutil
import sys

import numpy as np
import pytest
import torch

from cadr.cli.main import main
from cadr.data.sources import csv_table
from cadr.data.sources.registry import open_blocks
from cadr.inference.predict import predict_file
from cadr.inference.predictor import Predictor
from cadr.training.signature import FILE, InputSpec
from tests.data.loose import open_data
from tests.report.own_runs import TINY, read_csv, write_csv

HEADER = ["id", "size", "bark", "height", "label"]
FEATURES = ("size", "size missing", "bark = rough", "bark = smooth", "bark = white", "height")
MEDIAN = 3.0


def trees(n=90, seed=0):
    """Rows with gaps in size and bark; the bark tells the kind."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 3, n)
    size = [None if random.random() < 0.2 else int(random.integers(1, 6)) for _ in range(n)]
    bark = np.array(["rough", "smooth", "white"], dtype=object)[kinds]
    bark[random.random(n) < 0.1] = ""
    height = random.normal(20, 3, n).astype(np.float32).astype(float)
    label = np.array(["oak", "ash", "birch"], dtype=object)[kinds]
    return [[f"tree {i}", size[i], bark[i], height[i], label[i] if i < 45 else ""] for i in range(n)]


def encoded(rows):
    """Written out: size or the median, whether it is missing, a 1 for the bark, height."""
    barks = ["rough", "smooth", "white"]
    return np.array(
        [
            [MEDIAN if size is None else size, size is None, *(bark == known for known in barks), height]
            for _, size, bark, height, _ in rows
        ],
        dtype=np.float32,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    data = write_csv(folder / "trees.csv", HEADER, trees())
    assert main(["train", str(data), "--ignore-columns", "id", *TINY, "--out", str(folder / "run")]) == 0
    return folder / "run"


def examples(run, path):
    return np.concatenate([block.examples for block in open_blocks(str(path), Predictor.load(run).wanted()).blocks])


def test_the_run_knows_how_the_table_was_encoded(run):
    spec = InputSpec.read(run)
    assert (spec.feature_names, spec.shape) == (FEATURES, (6,))
    assert [column.fill for column in spec.columns or ()] == [MEDIAN, None, None]
    np.testing.assert_array_equal(
        open_data(run.parent / "trees.csv", ignore_columns=("id",)).examples, encoded(trees())
    )


def test_columns_in_another_order_from_every_kind_of_file(run, tmp_path, monkeypatch, capsys):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = trees(60, seed=1)
    order = ["height", "note", "bark", "id", "size"]
    shuffled = [[height, "x", bark, name, size] for name, size, bark, height, _ in rows]
    table = write_csv(tmp_path / "new.csv", order, shuffled)
    gaps = write_csv(
        tmp_path / "gaps.csv", order, [[*row[:4], "n/A" if row[4] is None else row[4]] for row in shuffled]
    )
    columns = {name: [row[i] for row in shuffled] for i, name in enumerate(order)}
    columns["bark"] = pyarrow.array([bark or None for bark in columns["bark"]]).dictionary_encode()
    parquet.write_table(pyarrow.table(columns), tmp_path / "new.parquet")
    monkeypatch.setattr(csv_table, "ROWS", 16)
    expected = encoded(rows)
    np.testing.assert_array_equal(examples(run, table), expected)
    np.testing.assert_array_equal(examples(run, gaps), expected)  # Arrow does not know n/A: Python takes over
    np.testing.assert_array_equal(examples(run, tmp_path / "new.parquet"), expected)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    np.testing.assert_array_equal(examples(run, table), expected)
    assert main(["predict", str(run), str(table), "--out", str(tmp_path / "p.csv")]) == 0
    assert "unseen in training" not in capsys.readouterr().out
    found = read_csv(tmp_path / "p.csv")
    assert [(row["note"], row["id"]) for row in found] == [("x", f"tree {i}") for i in range(60)]
    probabilities = Predictor.load(run).probabilities(expected).max(1).values.numpy()
    np.testing.assert_allclose([float(row["probability"]) for row in found], probabilities, atol=1e-6)


def test_python_goes_on_where_arrow_stops(run, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow.csv")
    rows = trees(600, seed=4)
    late = [[*row[:1], "n/A" if i > 500 and row[1] is None else row[1], *row[2:]] for i, row in enumerate(rows)]
    path = write_csv(tmp_path / "new.csv", HEADER, late)
    monkeypatch.setattr(csv_table, "BYTES", 4096)
    stopped = []
    slow = csv_table._block

    def block(path, layout, wanted, lines, start):
        stopped.append(start)
        return slow(path, layout, wanted, lines, start)

    monkeypatch.setattr(csv_table, "_block", block)
    np.testing.assert_array_equal(examples(run, path), encoded(rows))
    assert 0 < stopped[0] <= 500


def test_unseen_words_count_as_blank_and_are_counted(run, tmp_path, monkeypatch, capsys):
    rows = trees(40, seed=2)
    unseen, blank = (
        [[*row[:2], word if i % 4 else row[2], *row[3:]] for i, row in enumerate(rows)] for word in ("?", "")
    )
    paths = [write_csv(tmp_path / f"{i}.csv", HEADER, table) for i, table in enumerate((unseen, blank))]
    np.testing.assert_array_equal(examples(run, paths[0]), encoded(blank))
    monkeypatch.setattr(csv_table, "ROWS", 16)
    for hidden in (False, True):
        if hidden:
            monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
        assert main(["predict", str(run), str(paths[0]), "--out", str(tmp_path / "p.csv")]) == 0
        words = "Categories unseen in training were treated as missing, in the column 'bark' ("
        assert f"{words}'?' in 30 rows)." in capsys.readouterr().out
    assert predict_file(run, str(paths[1]), tmp_path / "q.csv").unseen == {}
    assert [row["predicted"] for row in read_csv(tmp_path / "p.csv")] == [
        row["predicted"] for row in read_csv(tmp_path / "q.csv")
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["?", "thorny", "? ", "", "rough"], "'?', 'thorny' in 36 rows"),
        (["?", "thorny", "Rough"], "'?', 'thorny', 'Rough' in 60 rows"),
        (["x, y", "thorny", "Rough", "7", "8"], "'x, y', 'thorny', 'Rough' and others in 60 rows"),
        (["long " * 20], f"'{'long ' * 8}…' in 60 rows"),
        ([7], "'7' in 60 rows"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_first_unseen_words_are_named(words, said, suffix, run, tmp_path, monkeypatch, capsys):
    barks = [words[i % len(words)] for i in range(60)]
    path = tmp_path / f"new{suffix}"
    if suffix == ".csv":
        write_csv(path, ["size", "bark", "height"], [[1, bark, 2] for bark in barks])
    else:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table({"size": [1] * 60, "bark": barks, "height": [2] * 60}), path)
    monkeypatch.setattr(csv_table, "ROWS", 2)  # what is first in a block need not be first in the table
    monkeypatch.setattr(csv_table, "BYTES", 64)
    assert main(["predict", str(run), str(path), "--out", str(tmp_path / "p.csv")]) == 0
    assert f"in the column 'bark' ({said}).\n" in capsys.readouterr().out


def test_a_parquet_column_without_any_value_is_all_gaps(run, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"size": [None] * 3, "bark": [None] * 3, "height": [1, 2, 3]})
    parquet.write_table(table, tmp_path / "new.parquet")
    np.testing.assert_array_equal(
        examples(run, tmp_path / "new.parquet"), [[MEDIAN, 1, 0, 0, 0, height] for height in (1, 2, 3)]
    )


MISTAKES = {
    "a gap where training had none": (["", 1, "rough"], "line 3, column 'height': there is no number, and the table"),
    "a word where training had numbers": ([1, "big", "rough"], "line 3, column 'size': expected a number, got 'big'"),
    "infinity": ([1, "-inf", ""], "line 3, column 'size': -inf is not a finite number of 32 bits"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("arrow", [True, False])
def test_mistakes_cost_one_sentence(name, arrow, run, tmp_path, monkeypatch, capsys):
    row, words = MISTAKES[name]
    data = write_csv(tmp_path / "new.csv", ["height", "size", "bark"], [[1, 2, "rough"], row])
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    assert main(["predict", str(run), str(data), "--out", str(tmp_path / "p.csv")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "p.csv").exists()


def test_evaluate_report_and_resume_know_the_words(run, tmp_path, capsys):
    assert main(["evaluate", str(run)]) == 0
    assert main(["report", str(run), "--out", str(tmp_path / "report.html")]) == 0
    copy, data = tmp_path / "run", run.parent / "trees.csv"
    shutil.copytree(run, copy)
    before = data.read_text()
    try:
        data.write_text(before.replace("smooth", "slick"))
        capsys.readouterr()
        train = ["train", str(data), "--ignore-columns", "id", *TINY, "--out", str(copy)]
        for command in (["evaluate", str(copy)], train):
            assert main(command) == 2
            assert "The data have changed since" in capsys.readouterr().err
    finally:
        data.write_text(before)


def test_an_export_says_how_to_encode(run, tmp_path):
    onnx = pytest.importorskip("onnx")
    assert main(["export", str(run), "--formats", "safetensors", "torch", "onnx", "--out", str(tmp_path)]) == 0
    stored = json.loads((tmp_path / "model.json").read_text())["input"]
    beside = {"input.json": ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=beside).module()
    properties = {p.key: p.value for p in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert json.loads(beside["input.json"]) == json.loads(properties["input"]) == stored
    assert json.loads(properties["classes"]) == ["ash", "birch", "oak"]
    assert tuple(stored["feature_names"]) == FEATURES
    made = []
    for name, size, bark, height, _ in trees(20, seed=3):  # encoded by what the export says alone
        cells, row = {"id": name, "size": size, "bark": bark, "height": height}, []
        for column in stored["columns"]:
            cell = cells[column["name"]]
            if column["words"] is not None:
                row += [cell == word for word in column["words"]]
            elif column["fill"] is not None:
                row += [column["fill"] if cell is None else cell, cell is None]
            else:
                row += [cell]
        made.append(row)
    x = np.array(made, dtype=np.float32)
    np.testing.assert_array_equal(x, encoded(trees(20, seed=3)))
    expected = Predictor.load(run).probabilities(x).numpy()
    np.testing.assert_allclose(program(torch.from_numpy(x)).detach().numpy(), expected, atol=1e-5)
    card = (tmp_path / "MODEL_CARD.md").read_text()
    assert "| size | 2 | the number, or 3 where it is missing; 1 where it is missing, else 0 |" in card
    assert "| bark | 3 | 1 for the word that the cell is, 0 for the others: rough, smooth, white |" in card


def test_a_card_keeps_long_medians_and_words_with_commas(run, tmp_path):
    pytest.importorskip("safetensors")
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    spec = json.loads((copy / FILE).read_text())
    spec["columns"][0]["fill"] = 1234.5678
    spec["columns"][1]["words"][2] = "white, peeling"
    (copy / FILE).write_text(json.dumps(spec))
    assert main(["export", str(copy), "--formats", "safetensors", "--out", str(tmp_path)]) == 0
    card = (tmp_path / "MODEL_CARD.md").read_text()
    assert "- Input: features made of columns as said below, float32 (n, 6)" in card
    assert "the number, or 1234.5678 where it is missing" in card
    assert "0 for the others: rough, smooth, 'white, peeling' |" in card


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda spec: spec["columns"][1]["words"].pop(), "contradicts itself"),
        (lambda spec: spec["columns"][1].pop("name"), "cannot be used"),
        (lambda spec: spec.update(columns=[3]), "cannot be used"),
    ],
)
def test_an_input_json_that_is_damaged(change, words, run, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    spec = json.loads((copy / FILE).read_text())
    change(spec)
    (copy / FILE).write_text(json.dumps(spec))
    assert main(["predict", str(copy), str(run.parent / "trees.csv"), "--out", str(tmp_path / "p.csv")]) == 2
    assert words in capsys.readouterr().err
