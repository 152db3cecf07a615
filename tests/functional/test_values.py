"""`cadr.functional` equals the oracles in float64, values and gradients, over everything that logits may look like."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given

from cadr import functional
from tests.functional.problems import MODEST, Problem, close, gradients, leaf, problems, tensor
from tests.oracles import gradients as by_hand
from tests.oracles import losses, marginal

FORMS = ("straight_through", "batch")  # pinv has its own file: it needs well-conditioned batches


def undecided(logits: np.ndarray, prior: np.ndarray, threshold: float, beta: float) -> bool:
    """Whether some row lies so near its threshold that rounding alone decides."""
    return bool((np.abs(losses.margin(logits, prior, threshold, beta)) < 1e-9).any())


@MODEST
@given(problem=problems())
def test_update_prior(problem: Problem):
    ours = functional.update_prior(tensor(problem.prior), leaf(problem.weak), problem.momentum)
    assert ours.dtype == torch.float64
    assert not ours.requires_grad
    close(ours, marginal.update_prior(problem.prior, problem.weak, problem.momentum), atol=1e-14)
    close(ours.sum(), 1.0)


@pytest.mark.parametrize("form", FORMS)
@MODEST
@given(problem=problems())
def test_cap(form, problem: Problem):
    labelled, weak = leaf(problem.labelled), leaf(problem.weak)
    ours = functional.cap(labelled, torch.tensor(problem.labels), weak, tensor(problem.prior), form)
    assert ours.shape == ()
    assert ours.dtype == torch.float64
    arguments = (problem.labelled, problem.labels, problem.weak, problem.prior, form)
    close(ours, losses.cap(*arguments))
    for found, expected in zip(gradients(ours, labelled, weak), by_hand.cap(*arguments), strict=True):
        close(found, expected)


@MODEST
@given(problem=problems())
def test_cai(problem: Problem):
    arguments = (problem.threshold_prior, problem.threshold, problem.beta)
    assume(not undecided(problem.weak, *arguments))
    weak, strong = leaf(problem.weak), leaf(problem.strong)
    ours = functional.cai(weak, strong, tensor(problem.threshold_prior), problem.threshold, problem.beta)
    assert ours.shape == ()
    assert ours.dtype == torch.float64
    close(ours, losses.cai(problem.weak, problem.strong, *arguments))
    by_weak, by_strong = gradients(ours, weak, strong)
    close(by_strong, by_hand.cai(problem.weak, problem.strong, *arguments))
    np.testing.assert_array_equal(by_weak, 0.0)


@pytest.mark.parametrize("form", FORMS)
@MODEST
@given(problem=problems())
def test_supplement(form, problem: Problem):
    assume(not undecided(problem.labelled, problem.threshold_prior, problem.threshold, problem.beta))
    labelled, weak = leaf(problem.labelled), leaf(problem.weak)
    ours = functional.supplement(
        labelled,
        weak,
        tensor(problem.prior),
        tensor(problem.threshold_prior),
        problem.threshold,
        problem.beta,
        form,
    )
    assert ours.shape == ()
    assert ours.dtype == torch.float64
    arguments = (problem.prior, problem.threshold_prior, problem.threshold, problem.beta, form)
    close(ours, losses.supplement(problem.labelled, problem.weak, *arguments))
    by_labelled, by_weak = gradients(ours, labelled, weak)
    close(by_weak, by_hand.supplement(problem.labelled, problem.weak, *arguments))
    np.testing.assert_array_equal(by_labelled, 0.0)


@pytest.mark.parametrize("form", FORMS)
@MODEST
@given(problem=problems())
def test_cadr(form, problem: Problem):
    new = marginal.update_prior(problem.prior, problem.weak, problem.momentum)
    for logits in (problem.weak, problem.labelled):
        assume(not undecided(logits, new, problem.threshold, problem.beta))
    leaves = [leaf(problem.labelled), leaf(problem.weak), leaf(problem.strong)]
    ours, ours_new = functional.cadr(
        leaves[0], torch.tensor(problem.labels), leaves[1], leaves[2], tensor(problem.prior), *problem.kappa, form
    )
    arguments = (problem.labelled, problem.labels, problem.weak, problem.strong, problem.prior, *problem.kappa, form)
    expected, expected_new = losses.cadr(*arguments)
    close(ours, expected)
    close(ours_new, expected_new, atol=1e-14)
    assert not ours_new.requires_grad
    for found, by in zip(gradients(ours, *leaves), by_hand.cadr(*arguments), strict=True):
        close(found, by)
