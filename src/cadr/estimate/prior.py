"""The predicted class marginal: a moving average of it, and a version of it that carries a gradient."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from cadr.errors import ConfigError, DataError

Form = Literal["straight_through", "batch", "pinv"]

PINV_CLIP = 5.0  # the authors' upper limit on a row's weight
PINV_FLOOR = 1e-12  # p̃ may be exactly zero in this form, and its logarithm is needed


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision is widened, float64 stays."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def at_least_one_row(values: Tensor, what: str) -> Tensor:
    """The mean over no rows is not a number, and a P̂ that has become one stays one."""
    if values.shape[0] == 0:
        raise DataError(f"There is no row in {what}; leave out the steps whose batch is empty.")
    return values


def one_per_class(values: Tensor, logits: Tensor, what: str) -> Tensor:
    """A column of them, (C, 1), would be broadcast to C × C, and a mean over that is a number, though a wrong one."""
    if values.shape != logits.shape[1:]:
        shapes = f"{tuple(values.shape)} beside logits of {tuple(logits.shape)}"
        raise DataError(f"There must be one number per class in {what}, of shape (C,), got {shapes}.")
    return values


def mean_of(values: Tensor, weights: Tensor | None, what: str) -> Tensor:
    """Over the rows; one counts as often as its weight says."""
    if weights is None:
        return values.mean(0)
    w = row_weights(weights, values, what)
    shape = (-1, *[1] * (values.ndim - 1))
    counted = torch.where(w.reshape(shape) > 0, values, 0.0)  # what does not count may be infinite
    return (w.reshape(shape) * counted).sum(0) / w.sum()


def row_weights(weights: Tensor, values: Tensor, what: str) -> Tensor:
    """(n,) for n rows, as precise as these."""
    if weights.shape != values.shape[:1]:
        shapes = f"{tuple(weights.shape)} for {values.shape[0]} rows"
        raise DataError(f"There must be one number per row in {what}, of shape (n,), got {shapes}.")
    return weights.detach().to(torch.promote_types(values.dtype, torch.float32))


def uniform_prior(num_classes: int) -> Tensor:
    """P̂ before the first step."""
    return torch.full((num_classes,), 1.0 / num_classes)


@torch.no_grad()
def update_prior(
    prior: Tensor, logits_weak: Tensor, momentum: float = 0.99, *, unlabelled_weights: Tensor | None = None
) -> Tensor:
    """Eq. 10: P̂ ← μ P̂ + (1 − μ) P(Y; batch), from the weak views of the unlabelled batch."""
    probabilities = F.softmax(at_least_float32(at_least_one_row(logits_weak, "logits_weak")), dim=1)
    batch = mean_of(probabilities, unlabelled_weights, "unlabelled_weights")
    prior = one_per_class(prior, logits_weak, "prior").to(torch.promote_types(prior.dtype, batch.dtype))
    batch = batch.to(prior.dtype)
    # Interpolation, not two products: the rounded μ and 1 − μ need not add up to one, and the sum of P̂ would drift.
    return torch.lerp(prior, batch, 1.0 - momentum)


def log_marginal(
    logits_weak: Tensor, prior: Tensor, form: Form = "straight_through", unlabelled_weights: Tensor | None = None
) -> Tensor:
    """log p̃, (C,): the marginal that CAP divides by, differentiable in the unlabelled weak logits.

    straight_through: the value of the moving average, the gradient of the batch mean.
    batch: the mean prediction of this batch, value and gradient.
    pinv: the authors' code, a re-weighted batch mean whose weights reproduce the moving average where they can.
    """
    logits_weak = at_least_float32(at_least_one_row(logits_weak, "logits_weak"))
    prior = at_least_float32(one_per_class(prior, logits_weak, "prior")).detach()
    if form == "pinv":
        if unlabelled_weights is not None:
            raise ConfigError("The form 'pinv' has weights of its own; leave unlabelled_weights out, or the form.")
        return _reweighted_mean(F.softmax(logits_weak, dim=1), prior).clamp(min=PINV_FLOOR).log()
    # In log space a class whose probability underflows in every row still has a finite mean and its full gradient.
    log_p = F.log_softmax(logits_weak, dim=1)
    if unlabelled_weights is None:
        log_mean = torch.logsumexp(log_p, dim=0) - math.log(logits_weak.shape[0])
    else:
        w = row_weights(unlabelled_weights, logits_weak, "unlabelled_weights")
        log_mean = torch.logsumexp(log_p + w.log().unsqueeze(1), dim=0) - w.sum().log()
    if form == "batch":
        return log_mean
    if form == "straight_through":
        # No gradient passes through P̂, so this floor costs none; it is reached when a class has been absent for
        # thousands of steps and P̂ itself underflows.
        log_prior = prior.clamp(min=torch.finfo(prior.dtype).tiny).log()
        return log_prior + (log_mean - log_mean.detach())  # in this order: the bracket is an exact zero
    raise ConfigError(f"form must be 'straight_through', 'batch' or 'pinv', not {form!r}.")


def _reweighted_mean(predictions: Tensor, prior: Tensor) -> Tensor:
    """p̃ = w · Q with w = clip(P̂ · pinv(Q), 0, 5), the minimum-norm weights that give P̂ when nothing is clipped."""
    # float64, because a collapsed batch is ill-conditioned and autocast would lower anything less to half precision.
    weights: Tensor = prior.double() @ torch.linalg.pinv(predictions.detach().double())
    return (weights.clamp(0.0, PINV_CLIP).to(predictions.dtype).unsqueeze(1) * predictions).sum(0)
