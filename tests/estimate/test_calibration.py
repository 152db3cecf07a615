"""Calibration against SciPy's optimiser, a loop over bins, and simulations where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from cadr.estimate.calibration import Calibration, calibrate, calibration_error, fit, uncalibrated

PRIOR = np.array([0.2, 0.3, 0.5])


def calibrated(logits, labels, counts, rows) -> Any:
    return calibrate(torch.tensor(logits), torch.tensor(labels), torch.tensor(counts), torch.tensor(PRIOR), rows)


def problem(n, seed, classes=3):
    rng = np.random.default_rng(seed)
    logits, labels = rng.normal(size=(n, classes)) * 2, rng.integers(0, classes, n)
    return logits, labels, rng.normal(size=classes), rng.uniform(0.2, 3, n)


AT_A_BOUND = (1, 2, 3, 5)  # seeds whose α would be negative


@pytest.mark.parametrize("seed", range(6))
def test_the_fit_is_the_optimum_that_scipy_finds(seed):
    logits, labels, direction, weights = problem(40, seed)
    scaled = weights * (weights.sum() ** 2 / (weights**2).sum()) / weights.sum()

    def loss(theta):
        calibrated = np.exp(theta[0]) * logits + theta[1] * direction
        at_label = calibrated[np.arange(40), labels]
        penalty = 0.5 * (theta[0] ** 2 + theta[1] ** 2) / 0.5**2
        return penalty + np.sum(scaled * (logsumexp(calibrated, axis=1) - at_label))

    starts = ([0.5, 0.1], [-3.0, 0.0], [1.0, 1.0])  # there might be more than one valley
    ends: dict[str, Any] = {"bounds": [(None, None), (0, 1)], "options": {"gtol": 1e-9, "ftol": 1e-15}}
    expected = min((minimize(loss, x, method="L-BFGS-B", **ends) for x in starts), key=lambda r: r.fun).x
    found = fit(*map(torch.tensor, (logits, labels, direction, weights)))
    assert found == pytest.approx((np.exp(expected[0]), expected[1]), abs=1e-5)
    assert (expected[1] in (0.0, 1.0)) == (seed in AT_A_BOUND)


def simulate(n, seed, temperature=1.0):
    """Rows of three classes with their true posterior in the population."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=PRIOR)
    x = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[labels]
    likelihood = 1.5 * x  # log p(x | y) up to a constant: unit normals around 1.5·e_y
    return labels, likelihood, temperature * (likelihood + np.log(PRIOR))


def test_a_known_temperature_is_found():
    labels, _, logits = simulate(20_000, 0, temperature=3.0)
    counts = np.bincount(labels)
    found = calibrated(logits, labels, counts, 20_000)
    assert found.temperature == pytest.approx(3.0, rel=0.05)
    assert found.error_before > 5
    assert found.error_after < 1.5
    assert found.examples == 20_000


def test_a_model_of_the_biased_labels_is_moved_to_the_population():
    """A model that learned from labels missing not at random has their prior in it; held-out labels have it too."""
    labels, likelihood, _ = simulate(60_000, 1)
    propensity = np.array([0.6, 0.1, 0.02])
    rng = np.random.default_rng(2)
    kept = rng.random(len(labels)) < propensity[labels]
    counts = np.bincount(labels[kept])
    biased = likelihood + np.log(counts / counts.sum())
    held_out = np.flatnonzero(kept)[::2]
    found = calibrated(biased[held_out], labels[held_out], counts, len(labels))
    assert found.prior_correction == pytest.approx(1.0, abs=0.15)
    fresh_labels, fresh, truth = simulate(4000, 3)
    corrected = found(torch.tensor(fresh + np.log(counts / counts.sum()))).exp().numpy()
    np.testing.assert_allclose(corrected, softmax(truth, axis=1), atol=0.06)
    before = softmax(fresh + np.log(counts / counts.sum()), axis=1)
    chosen = np.arange(len(fresh_labels)), fresh_labels
    assert np.log(corrected[chosen]).mean() > np.log(before[chosen]).mean() + 0.1


def test_a_model_without_bias_left_is_not_corrected():
    labels, _, logits = simulate(60_000, 4)
    kept = np.random.default_rng(5).random(len(labels)) < np.array([0.6, 0.1, 0.02])[labels]
    counts = np.bincount(labels[kept])
    found = calibrated(logits[kept], labels[kept], counts, len(labels))
    assert found.prior_correction == pytest.approx(0.0, abs=0.1)
    assert found.temperature == pytest.approx(1.0, abs=0.1)


def test_a_few_labels_that_are_all_right_do_not_make_it_certain():
    logits = torch.eye(3, dtype=torch.float64) * 2
    found = calibrate(logits, torch.arange(3), torch.ones(3), torch.ones(3) / 3, rows=30)
    assert found.temperature == 1.0
    assert found.prior_correction == 0.0
    assert found.caution.endswith("not calibrated: 3 held-out labels cannot show whether the model is overconfident.")


def test_the_error_after_is_of_what_is_done_and_a_gain_that_labels_do_not_show_is_said():
    """Some folds of twenty-five labels ask for a change that all of them together do not."""
    said = 0
    for seed in range(15, 25):
        labels, _, logits = simulate(25, seed, temperature=1.5)
        found = calibrated(logits, labels, np.bincount(labels, minlength=3), 100)
        assert found.changes or found.error_after == found.error_before
    for seed in range(16):
        labels, _, logits = simulate(60, seed, temperature=1.5)
        found = calibrated(logits, labels, np.bincount(labels, minlength=3), 200)
        worse = found.changes and found.error_after >= found.error_before
        assert ("do not show that it helps" in found.caution) == worse
        said += worse
    assert said


def test_every_label_is_judged_by_a_fit_to_the_others():
    """With labels in the shares of the population there is nothing to weight and no direction to move in."""
    labels, _, logits = simulate(60, 0, temperature=3.0)
    z, y, equal = torch.tensor(logits), torch.tensor(labels), torch.ones(60, dtype=torch.float64)
    judged = torch.empty_like(z)
    for fold in range(5):
        mine = torch.arange(60) % 5 == fold
        slope, _ = fit(z[~mine], y[~mine], torch.zeros(3, dtype=torch.float64), equal[~mine])
        judged[mine] = (slope * z[mine]).softmax(1)
    found = calibrated(logits, labels, [20, 30, 50], 1000)
    assert found.changes
    assert found.error_after == pytest.approx(100 * calibration_error(judged, y, equal))


def test_a_few_labels_that_are_mostly_wrong_do_change_it():
    logits = 6.0 * torch.eye(3, dtype=torch.float64).repeat(4, 1)
    labels = torch.tensor([0, 1, 2, 1, 2, 0, 0, 2, 1, 1, 0, 2])
    found = calibrate(logits, labels, torch.ones(3) * 4, torch.ones(3) / 3, rows=30)
    assert found.temperature > 2.0
    assert "calibrated on 12 held-out labels only" in found.caution


def test_little_is_said_about_few_labels_and_nothing_about_none():
    few = Calibration(1.3, (0.0, 0.0), 0.0, 5.0, 4.0, 11)
    assert "calibrated on 11 held-out labels only" in few.caution
    assert "not calibrated" in uncalibrated(2).caution
    assert Calibration(1.3, (0.0, 0.0), 0.0, 5.0, 4.0, 30).caution == ""


def test_a_class_that_is_never_predicted_leaves_finite_numbers():
    logits, labels, _, _ = problem(12, 0)
    prior = torch.tensor([0.0, 0.0, 1.0])
    found = calibrate(torch.tensor(logits), torch.tensor(labels), torch.tensor([5, 6, 1]), prior, rows=100)
    assert np.isfinite([found.temperature, *found.correction]).all()
    assert torch.isfinite(found(torch.tensor(logits))).all()


def test_one_held_out_label_is_enough_to_run():
    found = calibrate(torch.tensor([[3.0, 0.0]]), torch.tensor([1]), torch.tensor([4, 3]), torch.ones(2) / 2, rows=20)
    assert found.temperature == 1.0
    assert found.error_before == found.error_after
    assert found.examples == 1


@pytest.mark.parametrize("seed", range(3))
def test_calibration_error_is_that_of_a_loop_over_bins(seed):
    logits, labels, _, weights = problem(200, seed)
    probabilities = softmax(logits, axis=1)
    error = 0.0
    for low in range(15):
        inside = [i for i in range(200) if low / 15 < probabilities[i].max() <= (low + 1) / 15]
        if inside:
            total = sum(weights[i] for i in inside)
            confidence = sum(weights[i] * probabilities[i].max() for i in inside) / total
            accuracy = sum(weights[i] * (probabilities[i].argmax() == labels[i]) for i in inside) / total
            error += total / weights.sum() * abs(confidence - accuracy)
    found = calibration_error(torch.tensor(probabilities), torch.tensor(labels), torch.tensor(weights))
    assert found == pytest.approx(error, abs=1e-12)


def test_the_upper_end_of_a_bin_belongs_to_it():
    probabilities = torch.tensor([[0.8, 0.2], [0.75, 0.25]], dtype=torch.float64)  # the bin ends at 12/15
    found = calibration_error(probabilities, torch.tensor([0, 1]), torch.ones(2, dtype=torch.float64))
    assert found == pytest.approx(abs((0.8 - 1) + (0.75 - 0)) / 2)


def test_applying_it():
    logits = np.random.default_rng(0).normal(size=(5, 3))
    found = Calibration(2.0, (0.1, -0.2, 0.1), 1.0, None, None, 5)
    expected = log_softmax(logits / 2 + np.array([0.1, -0.2, 0.1]), axis=1)
    np.testing.assert_allclose(found(torch.tensor(logits)).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(uncalibrated(3)(torch.tensor(logits)).numpy(), log_softmax(logits, axis=1), atol=1e-12)
