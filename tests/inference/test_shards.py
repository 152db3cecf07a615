"""Parts of a prediction, made by themselves, put together again: the same bytes as in one go."""

import csv as csv_module
import sys

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data.sources import arrays, csv_table, parquet, picture
from cadr.data.sources.parsing import TableError
from cadr.data.sources.table import cells_of
from cadr.inference.predict import predict_file
from cadr.utils.shard import Shard
from tests.report.own_runs import COLUMNS, NAMES, table, write_csv, write_images


def joined(run, data, tmp_path, shards):
    """The files of all shards, one after another, and the file of all rows."""
    predict_file(run, str(data), tmp_path / "whole.csv", device="cpu")
    parts = []
    for number in range(1, shards + 1):
        predict_file(run, str(data), tmp_path / f"{number}.csv", device="cpu", shard=Shard(number, shards))
        parts.append((tmp_path / f"{number}.csv").read_bytes())
    return b"".join(parts), (tmp_path / "whole.csv").read_bytes(), parts


@pytest.fixture
def rows(tmp_path):
    x, truth = table(300, seed=7)
    return x, [[f"line{' ' if i % 9 else chr(10)}{i}", *x[i], NAMES[truth[i]] if i % 3 else ""] for i in range(300)]


@pytest.mark.parametrize("shards", [1, 3, 7])
@pytest.mark.parametrize("kind", ["csv", "csv without Arrow", "npy", "parquet"])
def test_shards_of_a_table(trees, rows, tmp_path, monkeypatch, kind, shards):
    x, lines = rows
    if kind == "npy":
        monkeypatch.setattr(arrays, "ROWS", 32)
        np.save(data := tmp_path / "new.npy", x)
    elif kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        monkeypatch.setattr(parquet, "ROWS", 32)
        ids = {"id": [line[0] for line in lines], "label": pa.array([line[-1] for line in lines])}
        columns = ids | dict(zip(COLUMNS, x.T, strict=True))
        pq.write_table(pa.table(columns), data := tmp_path / "new.parquet", row_group_size=50)
    else:
        data = write_csv(tmp_path / "new.csv", ["id", *COLUMNS, "label"], lines)
        monkeypatch.setattr(csv_table, "BYTES", 512)
        monkeypatch.setattr(csv_table, "ROWS", 16)
        if kind == "csv without Arrow":
            monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
            monkeypatch.setattr(csv_table, "find_spec", lambda name: None)
        else:
            pytest.importorskip("pyarrow")
    together, whole, parts = joined(trees, data, tmp_path, shards)
    assert together == whole
    assert whole.count(b"\n") >= 301
    sizes = [len(part) for part in parts]
    assert min(sizes) > 0.2 * max(sizes)  # each has its share
    assert sum(part.startswith(b"id,") or part.startswith(b"row,") for part in parts) == 1


def test_a_cell_that_arrow_takes_and_we_do_not_is_no_reason_to_lose_rows(trees, tmp_path, monkeypatch):
    """What is read a second time, by Python, moves no part of the file."""
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(csv_table, "BYTES", 1024)
    monkeypatch.setattr(csv_table, "ROWS", 8)
    x, _ = table(300, seed=8)
    data = write_csv(tmp_path / "new.csv", ["id", *COLUMNS], [[i, *x[i]] for i in range(300)])
    real = cells_of

    def refusing(path, header, batch, layout):
        if 100 in batch.column(0).to_pylist() or "100" in batch.column(0).to_pylist():
            raise TableError("as if")
        return real(path, header, batch, layout)

    monkeypatch.setattr(csv_table, "cells_of", refusing)
    together, whole, _ = joined(trees, data, tmp_path, 4)
    assert together == whole
    with (tmp_path / "whole.csv").open(newline="") as file:
        assert [row["id"] for row in csv_module.DictReader(file)] == [str(i) for i in range(300)]


def test_shards_of_pictures(squares, tmp_path, monkeypatch):
    monkeypatch.setattr(picture, "TOGETHER", 2)
    write_images(tmp_path / "new", 9)
    together, whole, _ = joined(squares, tmp_path / "new", tmp_path, 3)
    assert together == whole
    assert whole.count(b".png") == 9


def test_more_shards_than_rows(trees, tmp_path, capsys):
    np.save(tmp_path / "new.npy", table(3)[0])
    together, whole, parts = joined(trees, tmp_path / "new.npy", tmp_path, 3)
    assert together == whole
    assert parts.count(b"") == 1  # the first has the header
    flags = ["--out", str(tmp_path / "p.csv"), "--shard", "2/3"]
    assert main(["predict", str(trees), str(tmp_path / "new.npy"), *flags]) == 0
    assert "0 rows" in capsys.readouterr().out


def test_shards_in_parquet_are_a_table_in_several_files(trees, rows, tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(arrays, "ROWS", 64)
    np.save(tmp_path / "new.npy", rows[0])
    predict_file(trees, str(tmp_path / "new.npy"), tmp_path / "whole.parquet", device="cpu")
    (tmp_path / "parts").mkdir()
    for number in (1, 2, 3):
        out = tmp_path / "parts" / f"{number}.parquet"
        predict_file(trees, str(tmp_path / "new.npy"), out, device="cpu", shard=Shard(number, 3))
    assert pq.read_table(tmp_path / "parts").equals(pq.read_table(tmp_path / "whole.parquet"))


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "-1/3", "a/b", "1/2/3", "²/3"])
def test_mistakes(trees, tmp_path, capsys, text):
    np.save(tmp_path / "new.npy", table(3)[0])
    command = ["predict", str(trees), str(tmp_path / "new.npy"), "--out", str(tmp_path / "p.csv"), f"--shard={text}"]
    assert main(command) == 2
    assert capsys.readouterr().err == f"cadr: shard: expected I/N with I from 1 to N, as 2/8, got {text!r}\n"


def test_shares_are_not_estimated_from_a_part(trees, tmp_path, capsys):
    np.save(tmp_path / "new.npy", table(3)[0])
    flags = ["--out", str(tmp_path / "p.csv"), "--shard", "1/2", "--prior", "estimated"]
    assert main(["predict", str(trees), str(tmp_path / "new.npy"), *flags]) == 2
    assert "prior: shares are estimated from all rows in one process" in capsys.readouterr().err


def test_parts_of_a_whole():
    for whole in (0, 1, 7, 100):
        for of in (1, 3, 8):
            parts = [Shard(i, of).part(whole) for i in range(1, of + 1)]
            assert [row for part in parts for row in part] == list(range(whole))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1
