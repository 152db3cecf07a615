"""What comes in as bf16, fp16 or fp32 is computed in at least fp32, and stays finite."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from torch import Tensor

from cadr import functional
from tests.functional.problems import FEW, MODEST, Problem, close, gradients, leaf, problems, tensor
from tests.oracles import gradients as by_hand
from tests.oracles import losses, marginal
from tests.oracles.softmax import Array

FORMS = ("straight_through", "batch", "pinv")
MILD = ("normal", "sharp", "uniform")  # at 1e4 the logarithms themselves have but three decimals in fp32


def decided(problem: Problem) -> bool:
    """Every confidence is farther from its threshold than fp32 can err."""
    new = marginal.update_prior(problem.prior, problem.weak, problem.momentum)
    rows = (
        (problem.weak, new),
        (problem.labelled, new),
        (problem.weak, problem.threshold_prior),
        (problem.labelled, problem.threshold_prior),
    )
    return all((np.abs(losses.margin(x, by, *problem.kappa[1:])) > 1e-5).all() for x, by in rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("form", ["straight_through", "batch"])
@FEW
@given(problem=problems(kinds=MILD, priors=("skewed", "uniform"), max_classes=50))
def test_cadr_in_fp32(form, dtype: torch.dtype, problem: Problem):
    """The logits are rounded beforehand, so an error above fp32's means that the computing was done in less."""
    problem = problem.rounded(dtype)
    buffer = np.asarray(problem.prior.astype(np.float32), dtype=np.float64)
    assume(decided(problem))
    leaves = [leaf(x, dtype) for x in (problem.labelled, problem.weak, problem.strong)]
    ours, new = functional.cadr(
        leaves[0],
        torch.tensor(problem.labels),
        leaves[1],
        leaves[2],
        tensor(buffer, torch.float32),
        *problem.kappa,
        form,
    )
    assert ours.dtype == torch.float32
    assert new.dtype == torch.float32
    arguments = (problem.labelled, problem.labels, problem.weak, problem.strong, buffer, *problem.kappa, form)
    expected, expected_new = losses.cadr(*arguments)
    close(ours, expected, rtol=2e-6, atol=1e-5)
    close(new, expected_new, rtol=1e-5, atol=1e-7)
    # A gradient comes back in the precision of its logits: rounding it there is the caller's choice.
    rounding = float(torch.finfo(dtype).eps)
    for found, by in zip(gradients(ours, *leaves), by_hand.cadr(*arguments), strict=True):
        close(found, by, rtol=1e-4 + rounding, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("form", ["straight_through", "batch"])
@FEW
@given(problem=problems(kinds=MILD, priors=("skewed", "uniform"), max_classes=50))
def test_each_loss_in_fp32(form, dtype, problem):
    """Everything in `dtype`, the buffers too: accepted, and computed in fp32 from there on."""
    problem = problem.rounded(dtype)
    assume(decided(problem))
    labelled, weak, strong = (leaf(x, dtype) for x in (problem.labelled, problem.weak, problem.strong))
    labels, rest = problem.labels, (problem.threshold, problem.beta)
    prior, threshold_prior = tensor(problem.prior, dtype), tensor(problem.threshold_prior, dtype)

    def compare(ours: Tensor, expected: float, by: Tensor, gradient: Array) -> None:
        assert ours.dtype == torch.float32
        close(ours, expected, rtol=2e-6, atol=1e-5)
        close(gradients(ours, by)[0], gradient, rtol=1e-4 + float(torch.finfo(dtype).eps), atol=1e-6)

    of_cap = (problem.labelled, labels, problem.weak, problem.prior, form)
    ours = functional.cap(labelled, torch.tensor(labels), weak, prior, form)
    compare(ours, losses.cap(*of_cap), weak, by_hand.cap(*of_cap)[1])

    of_supplement = (problem.labelled, problem.weak, problem.prior, problem.threshold_prior, *rest, form)
    ours = functional.supplement(labelled, weak, prior, threshold_prior, *rest, form)
    compare(ours, losses.supplement(*of_supplement), weak, by_hand.supplement(*of_supplement))

    of_cai = (problem.weak, problem.strong, problem.threshold_prior, *rest)
    ours = functional.cai(weak, strong, threshold_prior, *rest)
    compare(ours, losses.cai(*of_cai), strong, by_hand.cai(*of_cai))


def every_loss(
    problem: Problem, dtype: torch.dtype, form: Literal["straight_through", "batch", "pinv"]
) -> list[tuple[Tensor, list[Array]]]:
    labels = torch.tensor(problem.labels)
    prior, threshold_prior = (tensor(x, torch.float32) for x in (problem.prior, problem.threshold_prior))
    leaves = [leaf(x, dtype) for x in (problem.labelled, problem.weak, problem.strong)]
    labelled, weak, strong = leaves
    rest = (problem.threshold, problem.beta)
    values = [
        functional.cap(labelled, labels, weak, prior, form),
        functional.cai(weak, strong, threshold_prior, *rest),
        functional.supplement(labelled, weak, prior, threshold_prior, *rest, form),
        functional.cadr(labelled, labels, weak, strong, prior, *problem.kappa, form)[0],
    ]
    return [(value, gradients(value, *leaves)) for value in values]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("form", FORMS)
@FEW
@given(problem=problems(max_classes=60, max_rows=12))
def test_never_nan_or_infinite(form, dtype: torch.dtype, problem: Problem):
    for value, by in every_loss(problem, dtype, form):
        assert value.dtype == torch.float32
        assert torch.isfinite(value)
        assert all(np.isfinite(g).all() for g in by)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_update_prior_keeps_a_full_precision_buffer(dtype):
    """In bf16 the buffer would stand still: 0.01 of a change is below its resolution."""
    prior = torch.tensor([0.5, 0.3, 0.2])
    logits = torch.tensor([[1.0, 0.0, -1.0], [0.5, 0.0, 0.0]], dtype=dtype)
    new = functional.update_prior(prior, logits)
    assert new.dtype == torch.float32
    close(new, marginal.update_prior(prior.double().numpy(), logits.double().numpy(), 0.99), rtol=1e-5)


@MODEST
@given(problem=problems(kinds=("extreme", "one_hot", "vanished"), priors=("skewed", "uniform")))
def test_fp32_keeps_the_value_of_the_moving_average_at_huge_logits(problem: Problem):
    """The straight-through difference must cancel exactly: ℓ + (log P̂ − ℓ) would lose 1.5e-4 at logits of 1e4."""
    problem = problem.rounded(torch.float32)
    certain = 1e4 * np.eye(len(problem.prior))[problem.labels]  # cross-entropy is zero, J remains
    labels = torch.tensor(problem.labels)
    ours = functional.cap(
        tensor(certain, torch.float32), labels, leaf(problem.weak, torch.float32), tensor(problem.prior, torch.float32)
    )
    close(ours, losses.jensen_gap(np.log(problem.prior), problem.labels), rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("momentum", [0.9, 0.99, 0.999])
def test_the_buffer_keeps_its_sum_in_fp32(momentum):
    """Old rounding errors decay with the momentum, so three thousand steps show as much drift as a million."""
    generator = torch.Generator().manual_seed(0)
    prior = torch.full((10,), 0.1)
    logits = 3.0 * torch.randn(16, 32, 10, generator=generator)
    for step in range(3000):
        prior = functional.update_prior(prior, logits[step % 16], momentum)
    assert abs(prior.double().sum().item() - 1.0) < 1e-5
