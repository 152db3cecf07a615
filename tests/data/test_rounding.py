"""Numbers far from 0 that 32 bits would merge: counted from their middle in tables, refused in arrays."""

import sys

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data import from_arrays
from cadr.data.sources import table
from cadr.data.sources.base import Wanted
from cadr.data.sources.columns import Column
from cadr.data.sources.registry import open_blocks
from cadr.data.sources.schema_inference import merges
from cadr.errors import DataError
from cadr.training.prepare import fingerprint
from tests.data.loose import open_data
from tests.report.own_runs import TINY, read_csv, write_csv

N = 60
EPOCH = 1_700_000_000_000
MINUTES = EPOCH + 60_000 * (np.arange(N) % 3) + np.arange(N)  # in milliseconds


def write(path, numbers, names=("when", "size", "label")):
    labels = ["abc"[i % 3] if i % 2 else "" for i in range(len(numbers))]
    rows = [[n, i * i % 17, label] for i, (n, label) in enumerate(zip(numbers, labels, strict=True))]
    return write_csv(path, list(names), rows)


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [
        (MINUTES, True),
        (20_250_301 + np.arange(N) % 28, True),  # days, written as numbers
        (10_000 + np.arange(N) / 1e4, True),
        (-MINUTES, True),
        (EPOCH + 86_400_000 * np.arange(N), False),  # minutes do not matter among days
        (1_000_000 + np.arange(N), False),  # exact in 32 bits
        (np.full(N, EPOCH + 1), False),
        (0.1 + 1e-16 * np.arange(N), False),  # one number, as sums in another order make it
        (1e-50 * np.arange(N), False),
        (np.exp(np.arange(N)), False),
        (np.append(MINUTES, 1e300), False),  # refused elsewhere
        (np.append(MINUTES, np.inf), False),
        (np.append(MINUTES, np.nan), False),
    ],
)
def test_what_is_lost_in_32_bits(numbers, lost):
    assert merges(np.array(numbers, dtype=np.float64)) is lost


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_of_a_table_is_counted_from_its_middle(gaps, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 8)
    there = np.arange(N) % 7 != 3 if gaps else np.full(N, True)
    cells = [int(n) if known else None for n, known in zip(MINUTES, there, strict=True)]
    path = write(tmp_path / "t.csv", cells)
    if kind == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"when": cells, "size": [i * i % 17 for i in range(N)]}
        labels = ["abc"[i % 3] if i % 2 else None for i in range(N)]
        path = tmp_path / "t.parquet"
        parquet.write_table(pyarrow.table({**columns, "label": labels}), path)
    pool = open_data(path)
    middle = float(np.median(MINUTES[there]))
    assert pool.columns == (Column("when", fill=0.0 if gaps else None, offset=middle), Column("size"))
    np.testing.assert_array_equal(pool.examples[:, 0], np.where(there, MINUTES - middle, 0))
    if gaps:
        np.testing.assert_array_equal(pool.examples[:, 1], ~there)


def test_a_column_that_only_parts_of_the_table_would_lose_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 8)
    later = EPOCH + 86_400_000 * (np.arange(N) // 8) + np.arange(N) % 8
    pool = open_data(write(tmp_path / "t.csv", later))
    assert pool.columns is None
    np.testing.assert_array_equal(pool.examples[:, 0], later.astype(np.float32))


def test_the_offset_is_shown_and_tells_data_apart(tmp_path, capsys):
    words = [[*cells] for cells in zip(MINUTES, ["u", "v"] * (N // 2), ["abc"[i % 3] for i in range(N)], strict=True)]
    path = write_csv(tmp_path / "t.csv", ["when", "word", "label"], words)
    before = open_data(path)
    assert main(["data", "show", str(path)]) == 0
    middle = f"{np.median(MINUTES):.15g}"
    assert f"Numeric columns far from 0, less their median: when ({middle})." in capsys.readouterr().out
    after = open_data(write_csv(path, ["when", "word", "label"], [[row[0] + 60_000, *row[1:]] for row in words]))
    np.testing.assert_array_equal(before.examples, after.examples)
    assert fingerprint(before) != fingerprint(after)


@pytest.mark.parametrize("arrow", [True, False])
def test_new_rows_are_counted_from_the_same_number(arrow, tmp_path, monkeypatch):
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    columns = (Column("when", offset=float(EPOCH), fill=0.5), Column("size"))
    (tmp_path / "t.csv").write_text(f"size,when\n1,{EPOCH + 3}\n2,\n3,{EPOCH - 1}\n")
    (block,) = open_blocks(str(tmp_path / "t.csv"), Wanted((3,), ("x", "y"), columns)).blocks
    assert block.examples.tolist() == [[3, 0, 1], [0.5, 1, 2], [-1, 0, 3]]


def test_a_run_learns_what_the_minute_says_and_its_card_says_how_to_ask(tmp_path):
    data = write(tmp_path / "t.csv", MINUTES)
    arguments = [*TINY, "--steps", "300", "--algorithm", "supervised"]
    assert main(["train", str(data), *arguments, "--out", str(tmp_path / "run")]) == 0
    assert main(["predict", str(tmp_path / "run"), str(data), "--out", str(tmp_path / "p.csv")]) == 0
    right = [row["predicted"] == "abc"[i % 3] for i, row in enumerate(read_csv(tmp_path / "p.csv"))]
    assert np.mean(right) > 0.9  # two minutes in three, if the third is merged with another
    assert main(["export", str(tmp_path / "run"), "--formats", "torch", "--out", str(tmp_path / "run")]) == 0
    card = (tmp_path / "run" / "MODEL_CARD.md").read_text()
    assert f"| when | 1 | the number less {float(np.median(MINUTES))!r}, taken off in 64 bits |" in card


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_an_array_that_32_bits_would_merge_is_refused(dtype, tmp_path, capsys):
    x = np.stack([np.arange(N) % 5, MINUTES], axis=1).astype(dtype)
    y = np.arange(N) % 3
    words = f"column 1 holds numbers from {MINUTES.min()} to {MINUTES.max()}, .*; subtract an offset"
    with pytest.raises(DataError, match=words):
        from_arrays(x, y)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    assert main(["data", "show", str(tmp_path / "x.npy"), "--labels", str(tmp_path / "y.npy")]) == 2
    assert "subtract an offset" in capsys.readouterr().err
    assert from_arrays(x - x.mean(0).astype(dtype), y).examples.dtype == np.float32
