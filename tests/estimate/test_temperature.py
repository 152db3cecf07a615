"""Bias-corrected temperature scaling: its optimum against scipy's, and that it mends what it is made for."""

import numpy as np
import pytest
from scipy.optimize import minimize

from cadr.estimate.label_shift import SLOPE_RIDGE, fit_scaling
from tests.estimate.label_shift_problems import posterior, sample, shifted


def objective(theta, f, labels, weights, ridge):
    logits = theta[0] * np.log(f) + theta[1:]
    log_sum = np.log(np.exp(logits).sum(1))
    loss = (weights * (log_sum - logits[np.arange(len(labels)), labels])).sum()
    return loss + ridge / 2 * (theta[1:] ** 2).sum() + SLOPE_RIDGE / 2 * (theta[0] - 1) ** 2


@pytest.mark.parametrize("ridge", [0.1, 1.0, 30.0])
def test_is_the_optimum(ridge):
    f, labels, _, _ = shifted(0, [60, 30, 20, 5], [0.25] * 4, 10)
    weights = np.random.default_rng(1).exponential(size=len(labels))
    expected = minimize(objective, np.r_[1.0, np.zeros(4)], (f, labels, weights, ridge), tol=1e-10)
    found = fit_scaling(f, labels, weights, ridge)
    assert np.r_[found.slope, found.intercept] == pytest.approx(expected.x, abs=1e-3)


@pytest.mark.parametrize("other", [0.05, 0.2, 0.3])
def test_predictions_without_an_error_have_a_finite_optimum(other):
    labels = np.array([0, 1, 2, 0])
    f = other + (1 - 3 * other) * np.eye(3)[labels]
    expected = minimize(objective, np.r_[1.0, np.zeros(3)], (f, labels, np.ones(4), 1.0), tol=1e-10)
    found = fit_scaling(f, labels, ridge=1.0)
    assert np.r_[found.slope, found.intercept] == pytest.approx(expected.x, rel=1e-4, abs=1e-4)


def test_mends_overconfidence_and_a_wrong_prior():
    random = np.random.default_rng(0)
    labels = random.choice(4, 20_000, p=[0.4, 0.3, 0.2, 0.1])
    x = sample(labels, random)
    wrong = posterior(x, np.array([0.1, 0.2, 0.3, 0.4])) ** 3
    wrong /= wrong.sum(1, keepdims=True)
    right = posterior(x, np.array([0.4, 0.3, 0.2, 0.1]))
    scaling = fit_scaling(wrong, labels)
    assert scaling.slope == pytest.approx(1 / 3, abs=0.02)
    assert np.abs(scaling.apply(wrong) - right).mean() < 0.01
    assert scaling.apply(wrong).mean(0) == pytest.approx(np.bincount(labels) / len(labels), abs=1e-3)


def test_weights_are_repeated_rows():
    f, labels, _, _ = shifted(3, [40, 30, 20, 10], [0.25] * 4, 10)
    weights = np.random.default_rng(0).integers(1, 4, len(labels))
    once = fit_scaling(f, labels, weights.astype(float))
    repeated = fit_scaling(np.repeat(f, weights, axis=0), np.repeat(labels, weights))
    assert once.slope == pytest.approx(repeated.slope, abs=1e-6)
    assert once.intercept == pytest.approx(repeated.intercept, abs=1e-6)


@pytest.mark.parametrize("f", [np.eye(3)[[0, 1, 2, 0]], np.full((4, 3), 1 / 3)])
def test_certain_and_flat_predictions_give_probabilities(f):
    scaled = fit_scaling(f, np.array([0, 1, 2, 0])).apply(f)
    assert np.isfinite(scaled).all()
    assert scaled.sum(1) == pytest.approx(1.0)
