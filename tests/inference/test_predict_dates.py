"""Runs on a table with dates: new rows are counted from the day that the run keeps, here and in an export."""

import json
from datetime import date, datetime, timedelta

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data.sources.registry import open_blocks
from cadr.inference.predictor import Predictor
from cadr.training.signature import InputSpec
from tests.report.own_runs import TINY, write_csv


def flowers(n=80):
    """Tulips flower in spring and asters in autumn; some days were not written down, never that of planting."""
    rows = []
    for i in range(n):
        late = i % 2
        flowered = date(2021, 3, 1) + timedelta(days=i % 9) if not late else date(2022, 9, 1) + timedelta(days=i % 7)
        planted = datetime(2020, 10, 1) + timedelta(hours=5 * i)
        rows.append([None if i % 10 > 7 else flowered, planted, ["tulip", "aster"][late] if i < 40 else ""])
    return rows


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flowers")
    data = write_csv(folder / "flowers.csv", ["flowered", "planted", "label"], flowers())
    assert main(["train", str(data), *TINY, "--out", str(folder / "run")]) == 0
    return folder / "run"


NEW: list[list[datetime | None]] = [[datetime(2030, 1, 1, 12), datetime(2020, 10, 1)], [None, datetime(2020, 10, 2, 6)]]


def encoded(rows, columns):
    """By what a run or an export says of its columns alone."""
    made = []
    for row in rows:
        features = []
        for cell, column in zip(row, columns, strict=True):
            since = datetime.fromisoformat(column["since"])
            days = column["fill"] if cell is None else (cell - since) / timedelta(days=1)
            features += [days] if column["fill"] is None else [days, cell is None]
        made.append(features)
    return np.array(made, dtype=np.float32)


def test_csv_parquet_and_an_export_agree(run, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("safetensors")
    assert main(["export", str(run), "--formats", "safetensors", "--out", str(tmp_path)]) == 0
    stored = json.loads((tmp_path / "model.json").read_text())["input"]
    assert "the days from then to the cell" in stored["encoding"]
    expected = encoded(NEW, stored["columns"])
    paths = [write_csv(tmp_path / "new.csv", ["flowered", "planted"], NEW), tmp_path / "new.parquet"]
    flowered, planted = zip(*NEW, strict=True)
    parquet.write_table(pyarrow.table({"planted": planted, "flowered": flowered}), paths[1])
    for path in paths:
        (block,) = open_blocks(str(path), Predictor.load(run).wanted()).blocks
        np.testing.assert_array_equal(block.examples, expected)
        assert main(["predict", str(run), str(path), "--out", str(tmp_path / "p.csv")]) == 0
    first, second = InputSpec.read(run).columns or ()
    card = (tmp_path / "MODEL_CARD.md").read_text()
    filled = (
        f"the days since {first.since}, times in UTC, or {first.fill:.9g} where it is missing; 1 where it is missing"
    )
    assert f"| flowered | 2 | {filled}, else 0 |" in card
    assert f"| planted | 1 | the days since {second.since}, times in UTC |" in card


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (["2030-01-01", "04/03/2025"], "line 2, column 'planted': expected a date such as 2025-03-04 or"),
        (["44197", "2025-03-04"], "line 2, column 'flowered': expected a date such as 2025-03-04 or"),
        (["2030-01-01", ""], "line 2, column 'planted': there is no date, and the table that was trained on has one"),
    ],
)
def test_a_cell_that_is_no_date_costs_one_sentence(row, words, run, tmp_path, capsys):
    path = write_csv(tmp_path / "new.csv", ["flowered", "planted"], [row])
    assert main(["predict", str(run), str(path), "--out", str(tmp_path / "p.csv")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_damaged_day_is_noticed(run, tmp_path, capsys):
    path = run / "input.json"
    before = path.read_text()
    spec = json.loads(before)
    spec["columns"][0]["since"] = "some day"
    try:
        path.write_text(json.dumps(spec))
        data = str(run.parent / "flowers.csv")
        assert main(["predict", str(run), data, "--out", str(tmp_path / "p.csv")]) == 2
        assert "cannot be used" in capsys.readouterr().err
    finally:
        path.write_text(before)
