"""The scripted person: the table is the record's, what the page says is what it holds, and a draw is what it should."""

import json
import statistics
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import labelling

RECORD = json.loads(labelling.RECORD.read_text(encoding="utf-8"))


def mean(way):
    return statistics.mean(one[way] for one in RECORD["seeds"].values())


def test_the_table_is_the_records():
    text = labelling.RECORD.with_suffix(".md").read_text(encoding="utf-8")
    assert text == labelling.build(RECORD)


def test_what_is_said():
    assert list(RECORD["seeds"]) == [str(seed) for seed in labelling.SEEDS]
    assert RECORD["seeds"]["1"]["in Chromium"]
    said = (labelling.ROOT / "docs" / "labelling.md").read_text(encoding="utf-8").replace("\n", " ")
    figures = [f"{mean(way):.1f} %" for way in ("before", "chosen", "random", "twice as many")]
    assert (
        "took the accuracy from {} to {}, thirty at random to {} and sixty at random to {} (".format(*figures) in said
    )
    assert mean("chosen") > mean("twice as many") > mean("random")


def test_a_draw():
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 80)
    x = random.integers(0, 255, (960, 2, 2, 3), dtype=np.uint8)
    arrays: dict[str, NDArray[Any]] = {"y_train": y, "y_test": y, "x_train": x, "x_test": x}
    drawn = labelling.draw(arrays, 7)
    assert np.bincount(drawn.truth).tolist() == [60] * 10
    assert np.bincount(drawn.test_truth).tolist() == [40] * 10
    assert np.bincount(drawn.truth[drawn.labelled]).tolist() == list(labelling.LABELS)
    assert len(drawn.labelled) == 40
    places = [int(name.split()[1]) for name in drawn.names]
    assert len(set(places)) == 10
    again = labelling.draw(arrays, 7)
    np.testing.assert_array_equal(drawn.pictures, again.pictures)
