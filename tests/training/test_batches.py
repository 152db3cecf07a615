"""Batches are a pure function of (seed, step): shuffled epochs without gaps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cadr.data.shuffle import LABELLED, UNLABELLED, balanced_indices, indices

sizes = st.integers(1, 40)


@given(sizes, sizes, st.integers(0, 50), st.integers(1, 20), st.integers(1, 20))
def test_rows_do_not_depend_on_where_one_begins(n, batch, start, first, second):
    whole = indices(7, LABELLED, n, batch, start, start + first + second)
    parts = (
        indices(7, LABELLED, n, batch, start, start + first),
        indices(7, LABELLED, n, batch, start + first, start + first + second),
    )
    assert np.array_equal(whole, np.concatenate(parts))
    assert whole.shape == (first + second, batch)


@given(sizes, sizes)
def test_every_epoch_holds_every_row_once(n, batch):
    steps = -(-3 * n // batch)
    epochs = indices(7, LABELLED, n, batch, 0, steps).reshape(-1)[: 3 * n].reshape(3, n)
    assert (np.sort(epochs, axis=1) == np.arange(n)).all()


def test_epochs_streams_and_seeds_differ():
    first = indices(7, LABELLED, 500, 500, 0, 2)
    orders = [first[0], first[1], indices(7, UNLABELLED, 500, 500, 0, 1)[0], indices(8, LABELLED, 500, 500, 0, 1)[0]]
    for i, one in enumerate(orders):
        for other in orders[:i]:
            assert (one == other).mean() < 0.05


def test_order_is_uniform():
    # Each of 5 rows in each of 5 places of 4,000 epochs: chi-square with 16 degrees of freedom stays below 45.
    places = indices(1, UNLABELLED, 5, 5, 0, 4000)
    counts = np.array([[(places[:, j] == i).sum() for j in range(5)] for i in range(5)])
    assert ((counts - 800) ** 2 / 800).sum() < 45


def test_order_is_fixed_for_ever():
    assert indices(1, LABELLED, 6, 4, 0, 3).tolist() == [[4, 5, 3, 1], [0, 2, 5, 3], [1, 4, 2, 0]]


labels = st.lists(st.integers(0, 4), min_size=1, max_size=30).map(np.array)


@given(labels, sizes, st.integers(0, 50), st.integers(1, 20), st.integers(1, 20))
def test_balanced_rows_do_not_depend_on_where_one_begins(labels, batch, start, first, second):
    whole = balanced_indices(7, LABELLED, labels, batch, start, start + first + second)
    parts = (
        balanced_indices(7, LABELLED, labels, batch, start, start + first),
        balanced_indices(7, LABELLED, labels, batch, start + first, start + first + second),
    )
    assert np.array_equal(whole, np.concatenate(parts))
    assert whole.shape == (first + second, batch)


@given(labels)
def test_balanced_rows_hold_every_class_once_a_round_and_every_row_once_an_epoch_of_its_class(labels):
    classes, counts = np.unique(labels, return_counts=True)
    rounds = 2 * int(counts.max())
    drawn = balanced_indices(7, LABELLED, labels, len(classes), 0, rounds)
    assert (np.sort(labels[drawn], axis=1) == classes).all()
    for c, n in zip(classes, counts, strict=True):
        epochs = drawn[labels[drawn] == c][: rounds // n * n].reshape(-1, n)
        assert (np.sort(epochs, axis=1) == np.flatnonzero(labels == c)).all()


def test_balanced_rows_are_not_in_step_with_one_another():
    """Two classes of the same size do not go through their rows in the same order, nor do two rounds of classes."""
    labels = np.repeat([0, 1], 300)
    drawn = balanced_indices(7, LABELLED, labels, 600, 0, 1)[0]
    one, other = drawn[labels[drawn] == 0], drawn[labels[drawn] == 1] - 300
    assert (one == other).mean() < 0.05
    assert 0.4 < (labels[drawn].reshape(-1, 2)[:, 0] == 0).mean() < 0.6
