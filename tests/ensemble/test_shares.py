"""Class shares: tilting to them, estimating them, shrinking them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cadr.ensemble.shares import likeliest_shares, offsets_for_shares, posterior_with_shares, shrunk


def _scores(seed, n=200, classes=4):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, classes)) * 2


@settings(max_examples=30)
@given(st.integers(0, 1000), st.lists(st.floats(0.02, 1), min_size=3, max_size=6))
def test_the_mean_has_the_shares(seed, parts):
    shares = np.array(parts) / sum(parts)
    found = posterior_with_shares(_scores(seed, classes=len(parts)), shares)
    np.testing.assert_allclose(found.mean(0), shares, atol=1e-3)


def test_offsets_are_all_that_is_added():
    scores, shares = _scores(1), np.array([0.7, 0.1, 0.1, 0.1])
    tilted = scores + offsets_for_shares(scores, shares)
    by_hand = np.exp(tilted) / np.exp(tilted).sum(1, keepdims=True)
    np.testing.assert_allclose(by_hand, posterior_with_shares(scores, shares))


@pytest.mark.parametrize(("prior", "rows"), [(0.0, 1.0), (0.3, 40.0)])
def test_likeliest_shares_maximise_the_likelihood(prior, rows):
    """With so many rows more of each class."""
    scores = _scores(2, n=400, classes=3)

    def loss(logits):
        q = np.exp(logits) / np.exp(logits).sum()
        return -np.log(np.exp(scores) @ q).sum() - rows * np.log(q).sum()

    best = minimize(loss, np.zeros(3)).x
    np.testing.assert_allclose(likeliest_shares(scores, prior), np.exp(best) / np.exp(best).sum(), atol=2e-3)


def test_no_class_is_lost():
    """No row looks like the last class, but a label proves that it exists."""
    scores = np.array([[4.0, 0.0, -9.0], [0.0, 4.0, -9.0]]).repeat(500, axis=0)
    found = likeliest_shares(scores)
    assert 0.01 < found[2] < 0.02
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_likeliest_shares_of_known_densities():
    random = np.random.default_rng(3)
    truth = np.array([0.6, 0.3, 0.1])
    labels = random.choice(3, 20_000, p=truth)
    x = random.normal(np.array([-2.0, 0.0, 2.0])[labels])
    densities = -0.5 * (x[:, None] - np.array([-2.0, 0.0, 2.0])) ** 2
    np.testing.assert_allclose(likeliest_shares(densities, prior=0.0), truth, atol=0.02)


def test_draws_that_agree_are_believed():
    draws = np.tile([0.6, 0.3, 0.1], (10, 1))
    found, kept = shrunk(draws, np.array([10.0, 10.0, 10.0]))
    assert kept == 1
    np.testing.assert_allclose(found, draws[0])


def test_draws_that_differ_more_than_they_are_from_equal_shares_are_not():
    draws = np.array([[0.8, 0.1, 0.05, 0.02, 0.02, 0.01], [0.01, 0.02, 0.02, 0.05, 0.1, 0.8]] * 5)
    found, kept = shrunk(draws, np.array([60.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
    assert kept == 0
    np.testing.assert_allclose(found, np.full(6, 1 / 6))


def test_shares_of_two_classes_stay_as_estimated():
    """However uncertain: to take them for equal instead cost twelve points where they are three to one."""
    draws = np.array([[0.9, 0.1], [0.55, 0.45]] * 5)
    found, kept = shrunk(draws, np.array([10.0, 40.0]))
    assert kept == 1
    np.testing.assert_allclose(found, [0.725, 0.275])


def test_shares_near_those_of_the_labels_are_shrunk_to_them():
    random = np.random.default_rng(4)
    draws = random.dirichlet([80, 15, 5, 5, 5], 20)
    found, kept = shrunk(draws, np.array([160.0, 30.0, 10.0, 10.0, 10.0]))
    centre = np.array([161, 31, 11, 11, 11]) / 225
    assert 0 <= kept < 1
    np.testing.assert_allclose(found, kept * draws.mean(0) + (1 - kept) * centre)
    assert kept == pytest.approx(max(0, 1 - 0.5 * draws.var(0).sum() / ((draws.mean(0) - centre) ** 2).sum()))
