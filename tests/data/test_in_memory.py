"""Lists, and pandas' tables and columns, are as good as arrays; labels with gaps may be floating point."""

import numpy as np
import pytest

from cadr.data.pool import is_mapped
from cadr.errors import DataError
from tests.data.loose import from_arrays, open_data

ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]]


@pytest.mark.parametrize(
    "labels",
    [
        [1, -1, 0],
        [1.0, float("nan"), 0.0],
        [1, None, 0],
        np.array([1.0, np.nan, 0.0], np.float32),
        np.array([1, None, 0], object),
        np.array([1.0, float("nan"), 0], object),
    ],
)
def test_numbers_with_gaps(labels):
    pool = from_arrays(ROWS, labels, test_examples=ROWS[:1], test_labels=[0.0])
    assert pool.examples.dtype == np.float32
    assert pool.examples.tolist() == ROWS
    assert (pool.labels.tolist(), pool.class_names) == ([1, -1, 0], ("0", "1"))
    assert pool.test_labels.tolist() == [0]


@pytest.mark.parametrize("gap", ["", None, float("nan")])
def test_text_with_gaps(gap):
    labels = ["wren", gap, "robin"]
    for pool in (from_arrays(ROWS, labels), from_arrays(ROWS, np.array(labels, object))):
        assert (pool.class_names, pool.labels.tolist()) == (("robin", "wren"), [1, -1, 0])


def test_pandas():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(ROWS, columns=["a", "b"]).assign(seen=[True, False, True])
    for labels in (
        pandas.Series([1, None, 0]),
        pandas.Series([1, None, 0], dtype="Int64"),
        pandas.Series([1, None, 0], dtype="category"),
    ):
        pool = from_arrays(table, labels)
        assert pool.examples.tolist() == [[1, 2, 1], [3, 4, 0], [5, 6.5, 1]]
        assert pool.labels.tolist() == [1, -1, 0]
    for kind in (object, "string", "category"):
        words = from_arrays(table[["a", "b"]], pandas.Series(["wren", None, "robin"], dtype=kind))
        assert (words.class_names, words.labels.tolist()) == (("robin", "wren"), [1, -1, 0])


def test_floating_point_in_files(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array(ROWS, np.float32), y=np.array([1, np.nan, 0]))
    pool = open_data(tmp_path / "a.npz")
    assert pool.labels.tolist() == [1, -1, 0]
    assert is_mapped(pool.examples)


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        ([[1.0], [2.0, 3.0]], [0, 1], "expected an array, or what can become one"),
        ([["red"], ["green"]], [0, 1], "expected uint8 images .* got <U5"),
        (np.array([["red"], [1.0]], object), [0, 1], "got object of shape"),
        ([[1.0], [None]], [0, 1], r"examples\[1, 0\] is nan"),
        ([[1.0], [2.0]], [0, 0.5], r"labels\[1\] is 0.5"),
        ([[1.0], [2.0]], [[0], [1]], r"shape \(2, 1\)"),
        ([[1.0], [2.0]], [{}, None], "got object of shape"),
    ],
)
def test_what_is_none(rows, labels, words):
    with pytest.raises(DataError, match=words):
        from_arrays(rows, labels)
