"""Labels held out for validation: in proportion, never the last of a class, and in neither stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadr.data import Pool, validation
from cadr.errors import DataError


def pool(counts, unlabelled=5, order=0):
    labels = np.concatenate([np.full(n, c) for c, n in enumerate(counts)] + [np.full(unlabelled, -1)])
    labels = np.random.default_rng(order).permutation(labels).astype(np.int64)
    examples = np.arange(2 * len(labels), dtype=np.float32).reshape(-1, 2)
    return Pool(examples, labels, tuple(f"c{c}" for c in range(len(counts))))


@settings(max_examples=50)
@given(counts=st.lists(st.integers(1, 40), min_size=2, max_size=6), share=st.floats(0.01, 0.99), seed=st.integers(0, 9))
def test_in_proportion_and_never_the_last_label(counts, share, seed):
    before = pool(counts)
    rows = validation.choose(before, share, seed)
    held = np.bincount(before.labels[rows], minlength=len(counts))
    assert (before.labels[rows] >= 0).all()
    for n, k in zip(counts, held, strict=True):
        assert k <= n - 1
        assert abs(k - share * n) <= 0.5 or k == n - 1
    after = validation.hold_out(before, rows)
    if len(rows):
        assert after.stream is not None
        assert (after.counts == before.counts - held).all()
        assert not np.isin(rows, after.stream).any()
        assert len(after.stream) == len(before.labels) - len(rows)
        np.testing.assert_array_equal(after.test_examples, before.examples[rows])
        np.testing.assert_array_equal(after.test_labels, before.labels[rows])


def test_another_seed_holds_out_others_and_the_same_seed_the_same():
    data = pool([30, 30])
    first = validation.choose(data, 0.3, 1)
    np.testing.assert_array_equal(first, validation.choose(data, 0.3, 1))
    assert set(first) != set(validation.choose(data, 0.3, 2))


def test_one_label_of_each_class_leaves_nothing_to_hold_out():
    data = pool([1, 1])
    rows = validation.choose(data, 0.5, 1)
    assert len(rows) == 0
    assert validation.hold_out(data, rows) is data


def test_the_file_reads_back(tmp_path):
    rows = np.array([2, 5, 9])
    (tmp_path / "v.json").write_text(validation.to_json(rows, pool([30, 30])))
    np.testing.assert_array_equal(validation.read(tmp_path / "v.json"), rows)


@pytest.mark.parametrize("text", ["", "[]", '{"rows": [3, 1]}', '{"rows": [-1]}', '{"rows": "x"}', '{"rows": [[1]]}'])
def test_a_damaged_file_is_one_sentence(tmp_path, text):
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(DataError, match="held out"):
        validation.read(tmp_path / "v.json")


def test_labels_that_are_gone_are_noticed():
    data = pool([4, 4])
    missing = np.flatnonzero(data.labels == -1)[:1]
    for rows in (missing, np.array([len(data.labels)])):
        with pytest.raises(DataError, match="no longer"):
            validation.hold_out(data, rows)
