"""The registry of sources: a format is one module and one entry, and every door then opens it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from cadr import open_data
from cadr.cli.main import main
from cadr.data.sources import registry
from cadr.data.sources.arrays import array_blocks, from_arrays
from cadr.data.sources.base import PredictionDataError, Wanted
from cadr.errors import DataError


def _records(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return np.array([record["x"] for record in records], dtype=np.float32), [record["y"] for record in records]


def _open_pool(path, options):
    x, y = _records(path)
    return from_arrays(x, y, name=path.stem)


def _open_blocks(path, wanted, labels):
    return array_blocks(str(path), _records(path)[0], None, wanted)


JSON_LINES = SimpleNamespace(
    NAME="a file of records",
    KIND="features",
    LABELS_BESIDE=False,
    matches=lambda path: path.suffix == ".jsonl",
    open_pool=_open_pool,
    open_blocks=_open_blocks,
)


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "r.jsonl"
    rows = [{"x": [i, -i], "y": ["a", "b", ""][i % 3]} for i in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_format_is_one_entry(records, monkeypatch, capsys):
    with pytest.raises(DataError, match="expected a folder"):
        open_data(records)
    monkeypatch.setattr(registry, "SOURCES", (*registry.SOURCES, JSON_LINES))
    assert open_data(records).counts.tolist() == [3, 3]
    assert registry.likely_kind(records) == "features"
    blocks = registry.open_blocks(str(records), Wanted((2,), ("a", "b"))).blocks
    assert np.concatenate([block.examples for block in blocks]).tolist() == [[i, -i] for i in range(9)]
    with pytest.raises(
        PredictionDataError, match=r"r\.jsonl is a file of records, but the model was trained on images"
    ):
        registry.open_blocks(str(records), Wanted((8, 8, 3), ("a", "b")))
    more = records.with_name("more.csv")
    more.write_text("row,label\n2,b\n")
    assert main(["data", "show", str(records), "--labels", str(more)]) == 0
    assert "7 labelled" in capsys.readouterr().out


def test_every_format_says_all_that_is_asked_of_one():
    for source in registry.SOURCES:
        assert source.NAME.startswith("a")
        assert source.KIND in ("image", "features", None)
        assert isinstance(source.LABELS_BESIDE, bool)


def test_a_picture_alone_is_nothing_to_train_on(tmp_path):
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"x\.png is a single picture; expected a folder of them"):
        open_data(tmp_path / "x.png")
