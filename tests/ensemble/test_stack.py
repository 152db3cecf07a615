"""The stack's weights against a slow optimum, and what they mean."""

import numpy as np
from scipy.optimize import minimize

from cadr.ensemble.stack import draw_weights, fit_weights, mean_probabilities


def _held_out(seed=0, n=80):
    """A learner that knows, one that guesses, and labels of three classes."""
    random = np.random.default_rng(seed)
    labels = random.choice(3, n, p=[0.7, 0.2, 0.1])
    good = 2.0 * np.eye(3)[labels] + random.normal(size=(n, 3))
    return np.stack([good, 3 * random.normal(size=(n, 3))]), labels


def _softmax(scores):
    return np.exp(scores) / np.exp(scores).sum(1, keepdims=True)


def test_optimum():
    held_out, labels = _held_out()
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(labels))
    rows = np.arange(len(labels))

    def sharpness_loss(log, scores):
        return 0.5 * log**2 - (weights * np.log(_softmax(np.exp(log) * scores)[rows, labels])).sum()

    grid = np.linspace(-2.5, 1.5, 4001)
    sharp = [np.exp(grid[np.argmin([sharpness_loss(log, s) for log in grid])]) for s in held_out]

    def loss(flat):
        scores = sum(np.exp(w) / 2 * t * s for w, t, s in zip(flat[:2], sharp, held_out, strict=True)) + flat[2:]
        return 0.5 * (flat**2).sum() - (weights * np.log(_softmax(scores)[rows, labels])).sum()

    best = minimize(loss, np.zeros(5)).x
    found = fit_weights(held_out, labels, weights)
    np.testing.assert_allclose(found.learners, np.exp(best[:2]) / 2 * sharp, rtol=0.05)
    np.testing.assert_allclose(found.offsets, best[2:], atol=0.02)


def test_a_learner_that_knows_counts_more_than_one_that_guesses():
    held_out, labels = _held_out()
    found = fit_weights(held_out, labels, np.ones(len(labels)))
    assert found.learners[0] > 3 * found.learners[1]


def test_draws_differ_and_are_a_function_of_the_seed():
    held_out, labels = _held_out()
    one, same, other = (draw_weights(held_out, labels, np.random.default_rng(s)) for s in (0, 0, 1))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a.learners, b.learners)
    assert any((a.learners != b.learners).any() for a, b in zip(one, other, strict=True))
    assert {(draw.learners > 0).sum() for draw in one} == {1, 2}  # of two learners, a random part


def test_probabilities_are_the_mean_over_the_draws():
    held_out, labels = _held_out()
    draws = draw_weights(held_out, labels, np.random.default_rng(0), 3)
    expected = np.mean(
        [_softmax(d.learners[0] * held_out[0] + d.learners[1] * held_out[1] + d.offsets) for d in draws], axis=0
    )
    np.testing.assert_allclose(mean_probabilities(draws, held_out), expected, rtol=1e-6)
