"""The pseudo-inverse form against the authors' formula: w = clip(P̂ pinv(sg Q), 0, 5), p̃ = max(w Q, 1e-12)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given

from cadr import functional
from tests.functional.problems import FEW, MODEST, Problem, close, gradients, leaf, problems, tensor
from tests.oracles import gradients as by_hand
from tests.oracles import losses, marginal
from tests.oracles.softmax import Array, Indices, softmax


def conditioning(weak: Array) -> float:
    return float(np.linalg.cond(softmax(weak)))


def compare(labels: Indices, weak: Array, prior: Array, rtol: float = 1e-9) -> None:
    """J alone (the labelled rows are right and certain, so that cross-entropy is zero), and its gradient."""
    labelled = 1e4 * np.eye(len(prior))[labels]
    weak_leaf = leaf(weak)
    ours = functional.cap(tensor(labelled), torch.tensor(labels), weak_leaf, tensor(prior), "pinv")
    close(ours, losses.cap(labelled, labels, weak, prior, "pinv"), rtol=rtol, atol=rtol)
    expected = by_hand.cap(labelled, labels, weak, prior, "pinv")[1]
    close(gradients(ours, weak_leaf)[0], expected, rtol=rtol, atol=rtol * max(1.0, float(np.abs(expected).max())))


@MODEST
@given(problem=problems(kinds=("normal",), priors=("skewed", "uniform"), max_classes=40))
def test_random_batches(problem: Problem):
    """Both more and fewer rows than classes."""
    condition = conditioning(problem.weak)
    assume(condition < 1e4)
    compare(problem.labels, problem.weak, problem.prior, rtol=1e-14 * condition**2 + 1e-10)


@FEW
@given(problem=problems(kinds=("normal",), priors=("skewed",), max_classes=12))
def test_supplement_and_cadr(problem: Problem):
    condition = conditioning(problem.weak)
    new = marginal.update_prior(problem.prior, problem.weak, problem.momentum)
    assume(condition < 1e4)
    for logits, by in ((problem.weak, new), (problem.labelled, new), (problem.labelled, problem.threshold_prior)):
        assume((np.abs(losses.margin(logits, by, problem.threshold, problem.beta)) > 1e-9).all())
    tolerance = 1e-14 * condition**2 + 1e-9
    leaves = [leaf(problem.labelled), leaf(problem.weak), leaf(problem.strong)]
    ours, _ = functional.cadr(
        leaves[0], torch.tensor(problem.labels), leaves[1], leaves[2], tensor(problem.prior), *problem.kappa, "pinv"
    )
    arguments = (problem.labelled, problem.labels, problem.weak, problem.strong, problem.prior, *problem.kappa, "pinv")
    close(ours, losses.cadr(*arguments)[0], rtol=tolerance, atol=tolerance)
    for found, expected in zip(gradients(ours, *leaves), by_hand.cadr(*arguments), strict=True):
        close(found, expected, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(expected).max())))
    ours = functional.supplement(
        leaves[0], leaves[1], tensor(problem.prior), tensor(problem.threshold_prior), *problem.kappa[1:], "pinv"
    )
    rest = (problem.prior, problem.threshold_prior, *problem.kappa[1:], "pinv")
    expected_value = losses.supplement(problem.labelled, problem.weak, *rest)
    close(ours, expected_value, rtol=tolerance, atol=tolerance)
    by_labelled, by_weak = gradients(ours, *leaves[:2])
    expected = by_hand.supplement(problem.labelled, problem.weak, *rest)
    close(by_weak, expected, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(expected).max())))
    np.testing.assert_array_equal(by_labelled, 0.0)


def test_a_healthy_batch_reproduces_the_moving_average():
    """Every weight inside (0, 5): p̃ = P̂ exactly, so the value is the straight-through one."""
    rng = np.random.default_rng(3)
    weak = 3.0 * np.eye(5)[np.arange(200) % 5] + 0.1 * rng.normal(size=(200, 5))
    prior = 0.9 * softmax(weak).mean(axis=0) + 0.1 * np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    labelled, labels = rng.normal(size=(8, 5)), np.arange(8) % 5
    assert (marginal.pinv_weights(weak, prior) > 0).all()
    arguments = (tensor(labelled), torch.tensor(labels), tensor(weak), tensor(prior))
    pinv = functional.cap(*arguments, "pinv")
    close(pinv, functional.cap(*arguments, "straight_through").item(), rtol=1e-10)
    compare(labels, weak, prior)


def test_weights_clipped_above_and_below():
    """Two nearly equal rows: the exact weights are about 20 and −19, the clipped ones 5 and 0."""
    weak, prior = np.log([[0.51, 0.49], [0.49, 0.51]]), np.array([0.9, 0.1])
    np.testing.assert_array_equal(marginal.pinv_weights(weak, prior), [5.0, 0.0])
    compare(np.array([0, 0, 1]), weak, prior)
    p = 5.0 * np.array([0.51, 0.49])
    labels = np.array([0, 0, 1])
    by_formula = np.log(p[labels]).mean() + np.log((1.0 / p[labels]).mean())
    certain = tensor(1e4 * np.eye(2)[labels])
    close(functional.cap(certain, torch.tensor(labels), tensor(weak), tensor(prior), "pinv"), by_formula, rtol=1e-9)


def test_a_weight_above_five_with_fewer_rows_than_classes():
    """One row that is nearly flat over 200 classes, and a buffer all on its largest: w = P̂·q/‖q‖² ≈ 7.5."""
    weak = np.zeros((1, 200))
    weak[0, 7] = 2.72
    prior = np.full(200, 1e-6)
    prior[7] = 1.0 - 199e-6
    q = softmax(weak)[0]
    assert prior @ q / (q @ q) > 7.0
    np.testing.assert_array_equal(marginal.pinv_weights(weak, prior), [5.0])
    compare(np.array([7, 3, 3]), weak, prior)


def test_negative_weights_of_a_collapsed_batch():
    """A batch that predicts almost only class 0 while the buffer is still uniform."""
    rng = np.random.default_rng(11)
    weak = rng.normal(size=(30, 3)) * 0.3 + np.array([4.0, 0.0, 0.0])
    prior = np.full(3, 1.0 / 3.0)
    weights = prior @ np.linalg.pinv(softmax(weak))
    assert (weights < 0).mean() > 0.2
    compare(np.array([0, 0, 1, 2]), weak, prior)


@pytest.mark.parametrize("rows", [1, 5, 12])
def test_rank_one_batches(rows):
    """All rows equal, so that all but one singular value vanish."""
    weak = np.tile(np.array([[1.0, 0.0, -1.0, 0.5, 0.2, -0.3]]), (rows, 1))
    compare(np.array([0, 1, 1, 5]), weak, np.array([0.3, 0.25, 0.2, 0.12, 0.08, 0.05]))
    compare(np.array([0, 1, 1, 5]), np.zeros((rows, 6)), np.array([0.3, 0.25, 0.2, 0.12, 0.08, 0.05]))


def test_a_class_that_no_row_predicts_is_floored():
    """One-hot predictions of classes 0 and 1 only: p̃_2 = 1e-12, not zero, and it has no gradient."""
    weak = 1e4 * np.eye(3)[[0, 0, 1, 1]]
    prior, labels = np.array([0.5, 0.3, 0.2]), np.array([0, 1, 2])
    p = np.array([0.5, 0.3, 1e-12])
    certain = 1e4 * np.eye(3)[labels]
    ours = functional.cap(tensor(certain), torch.tensor(labels), tensor(weak), tensor(prior), "pinv")
    close(ours, np.log(p).mean() + np.log((1.0 / p).mean()), rtol=1e-9)
    compare(labels, weak, prior)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@FEW
@given(problem=problems(max_classes=60))
def test_never_nan_or_infinite(dtype: torch.dtype, problem: Problem):
    leaves = [leaf(x, dtype) for x in (problem.labelled, problem.weak, problem.strong)]
    prior = tensor(problem.prior, dtype)
    ours, new = functional.cadr(
        leaves[0], torch.tensor(problem.labels), leaves[1], leaves[2], prior, *problem.kappa, "pinv"
    )
    assert torch.isfinite(ours)
    assert torch.isfinite(new).all()
    assert all(np.isfinite(g).all() for g in gradients(ours, *leaves))
