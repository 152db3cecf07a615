"""Predictions on a folder of tables, and on what lies in an object store, here one of fsspec's that is a folder."""

import pytest

from cadr.cli.main import main
from cadr.inference.predict import predict_file
from cadr.utils.shard import Shard
from tests.report.own_runs import COLUMNS, NAMES, read_csv, table, write_csv, write_images


@pytest.fixture
def tables(trees, tmp_path):
    """Three files, and the same rows in one."""
    x, truth = table(90, seed=12)
    rows = [[f"tree {i}", *x[i], NAMES[truth[i]]] for i in range(90)]
    header = ["id", *COLUMNS, "label"]
    (tmp_path / "many" / "more").mkdir(parents=True)
    for name, part in (("b.csv", rows[:50]), ("c.csv", rows[50:70]), ("more/a.csv", rows[70:])):
        write_csv(tmp_path / "many" / name, header, part)
    write_csv(tmp_path / "many" / ".hidden.csv", ["x"], [])
    return tmp_path / "many", write_csv(tmp_path / "one.csv", header, rows)


def test_a_folder_of_tables(trees, tables, tmp_path):
    many, one = tables
    predict_file(trees, str(many), tmp_path / "many.csv", device="cpu")
    predict_file(trees, str(one), tmp_path / "plain.csv", device="cpu")
    found = read_csv(tmp_path / "many.csv")
    assert [row.pop("file") for row in found] == ["b.csv"] * 50 + ["c.csv"] * 20 + ["more/a.csv"] * 20
    assert found == read_csv(tmp_path / "plain.csv")
    for url in (f"file://{many}", f"file://{many}/"):
        predict_file(trees, url, tmp_path / "url.csv", device="cpu")
        assert (tmp_path / "url.csv").read_bytes() == (tmp_path / "many.csv").read_bytes()
    parts = []
    for number in (1, 2):
        predict_file(trees, f"file://{many}", tmp_path / "part.csv", device="cpu", shard=Shard(number, 2))
        parts.append((tmp_path / "part.csv").read_bytes())
    assert b"".join(parts) == (tmp_path / "many.csv").read_bytes()
    assert [part.count(b"\n") for part in parts] == [51, 40]  # by files


def test_a_file_in_a_store(trees, tables, tmp_path):
    _, one = tables
    predict_file(trees, str(one), tmp_path / "plain.csv", device="cpu")
    predict_file(trees, f"file://{one}", tmp_path / "url.csv", device="cpu")
    assert (tmp_path / "url.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()


def test_parquet_keeps_types(trees, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x, _ = table(20, seed=13)
    (tmp_path / "many").mkdir()
    for i in range(2):
        columns = {
            "when": pa.array(range(10), pa.timestamp("ms")),
            **dict(zip(COLUMNS, x[10 * i :][:10].T, strict=True)),
        }
        pq.write_table(pa.table(columns), tmp_path / "many" / f"part-{i}.parquet")
    predict_file(trees, str(tmp_path / "many"), tmp_path / "p.parquet", device="cpu")
    found = pq.read_table(tmp_path / "p.parquet")
    assert found.column_names[:3] == ["file", "when", "predicted"]
    assert found.schema.field("when").type == pa.timestamp("ms")
    assert found.column("file").to_pylist() == ["part-0.parquet"] * 10 + ["part-1.parquet"] * 10


def test_tables_whose_rows_have_only_numbers(trees, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "many").mkdir()
    for name in ("a.csv", "b.csv"):
        write_csv(tmp_path / "many" / name, COLUMNS, table(4)[0].tolist())
    for out in ("p.csv", "p.parquet"):
        predict_file(trees, str(tmp_path / "many"), tmp_path / out, device="cpu")
    found = read_csv(tmp_path / "p.csv")
    assert [(row["file"], row["row"]) for row in found][3:5] == [("a.csv", "3"), ("b.csv", "0")]


def test_pictures_in_a_store(squares, tmp_path):
    write_images(tmp_path / "new" / "light", 3)
    write_images(tmp_path / "new" / "other", 2)
    predict_file(squares, str(tmp_path / "new"), tmp_path / "plain.csv", device="cpu")
    predict_file(squares, f"file://{tmp_path}/new", tmp_path / "url.csv", device="cpu")
    assert (tmp_path / "url.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    assert [row["label"] for row in read_csv(tmp_path / "url.csv")] == ["light"] * 3 + [""] * 2


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nosuch://bucket/x.csv", "nosuch://bucket/x.csv cannot be opened: "),
        ("file:///nowhere/at/all", "file:///nowhere/at/all: there is no such file or folder, or nothing in it"),
        ("file://{}/photos", "/photos: there are no tables (.csv, .parquet, .pq, .tsv)"),
    ],
)
def test_what_is_not_there(trees, tmp_path, capsys, url, words):
    write_images(tmp_path / "photos", 1)
    assert main(["predict", str(trees), url.format(tmp_path), "--out", str(tmp_path / "p.csv")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_tables_that_differ(trees, tables, tmp_path, capsys):
    many, _ = tables
    write_csv(many / "z.csv", COLUMNS, table(4)[0].tolist())
    assert main(["predict", str(trees), str(many), "--out", str(tmp_path / "p.csv")]) == 2
    assert "z.csv has the columns 'row' beside the features, and b.csv 'id'" in capsys.readouterr().err
    assert not (tmp_path / "p.csv").exists()
    (tmp_path / "own").mkdir()
    write_csv(tmp_path / "own" / "a.csv", ["file", *COLUMNS], [])
    assert main(["predict", str(trees), str(tmp_path / "own"), "--out", str(tmp_path / "p.csv")]) == 2
    assert "have a column 'file'" in capsys.readouterr().err
