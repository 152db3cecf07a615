"""A row of weight k counts like k rows: losses, gradients and P̂ with integer weights are those of repeated rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cadr import functional
from cadr.errors import CadrError
from tests.functional.problems import FEW, Problem, close, leaf, problems, tensor

LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "cap": lambda p, z, y, weak, strong, **w: functional.cap(z, y, weak, tensor(p.prior), **w),
    "cap, batch": lambda p, z, y, weak, strong, **w: functional.cap(z, y, weak, tensor(p.prior), "batch", **w),
    "cai": lambda p, z, y, weak, strong, labelled_weights=None, unlabelled_weights=None: functional.cai(
        weak, strong, tensor(p.prior), p.threshold, p.beta, unlabelled_weights=unlabelled_weights
    ),
    "supplement": lambda p, z, y, weak, strong, **w: functional.supplement(
        z, weak, tensor(p.prior), tensor(p.threshold_prior), p.threshold, p.beta, **w
    ),
    "cadr": lambda p, z, y, weak, strong, **w: functional.cadr(
        z, y, weak, strong, tensor(p.prior), p.momentum, p.threshold, p.beta, **w
    )[0],
}


def weights_for(rows, seed):
    """Whole numbers, some of them 0, not all."""
    drawn = np.random.default_rng(seed).integers(0, 4, rows)
    drawn[0] = max(drawn[0], 1)
    return drawn


def repeated(values, times):
    return np.repeat(values, times, axis=0)


@pytest.mark.parametrize("name", LOSSES)
@FEW
@given(problem=problems(), seed=st.integers(0, 99))
def test_a_weight_is_so_many_rows(name, problem: Problem, seed):
    of_labelled, of_others = weights_for(len(problem.labels), seed), weights_for(len(problem.weak), seed + 1)
    labels = torch.tensor(problem.labels)
    here = [leaf(values) for values in (problem.labelled, problem.weak, problem.strong)]
    weights = {"labelled_weights": torch.tensor(of_labelled), "unlabelled_weights": torch.tensor(of_others)}
    ours = LOSSES[name](problem, here[0], labels, here[1], here[2], **weights)
    times = (of_labelled, of_others, of_others)
    there = [leaf(repeated(v, t)) for v, t in zip((problem.labelled, problem.weak, problem.strong), times, strict=True)]
    theirs = LOSSES[name](problem, there[0], torch.tensor(repeated(problem.labels, of_labelled)), there[1], there[2])
    close(ours, theirs.detach().numpy(), atol=1e-9)
    found = torch.autograd.grad(ours, here, materialize_grads=True, allow_unused=True)
    expected = torch.autograd.grad(theirs, there, materialize_grads=True, allow_unused=True)
    for gradient, of_copies, count in zip(found, expected, times, strict=True):
        added = np.zeros(gradient.shape)
        np.add.at(added, np.repeat(np.arange(len(count)), count), of_copies.numpy())
        close(gradient, added, atol=1e-9)


@FEW
@given(problem=problems(), seed=st.integers(0, 99))
def test_the_prior_counts_them_too(problem: Problem, seed):
    weights = weights_for(len(problem.weak), seed)
    ours = functional.update_prior(
        tensor(problem.prior), leaf(problem.weak), problem.momentum, unlabelled_weights=torch.tensor(weights)
    )
    theirs = functional.update_prior(tensor(problem.prior), leaf(repeated(problem.weak, weights)), problem.momentum)
    close(ours, theirs.numpy(), atol=1e-12)


def test_a_row_without_weight_may_be_anything():
    labelled, weak = torch.tensor([[1.0, 0.0], [-float("inf"), 0.0]]), torch.tensor([[0.5, 0.0], [3.0, 1.0]])
    labels, prior, w = torch.tensor([0, 0]), torch.full((2,), 0.5), torch.tensor([1.0, 0.0])
    loss = functional.cap(labelled, labels, weak, prior, labelled_weights=w, unlabelled_weights=w)
    assert loss.isfinite()


def test_weights_of_another_shape_are_refused():
    labelled, labels, prior = torch.zeros(3, 2), torch.tensor([0, 1, 0]), torch.full((2,), 0.5)
    with pytest.raises(
        CadrError, match=r"one number per row in labelled_weights, of shape \(n,\), got \(2,\) for 3 rows"
    ):
        functional.cap(labelled, labels, labelled, prior, labelled_weights=torch.ones(2))
    with pytest.raises(CadrError, match="'pinv' has weights of its own"):
        functional.cap(labelled, labels, labelled, prior, "pinv", unlabelled_weights=torch.ones(3))
