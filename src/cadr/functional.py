"""The losses of the paper as plain functions: tensors in, tensors out, no state, for anybody's training loop.

    loss, prior = cadr(logits_labelled, labels, logits_weak, logits_strong, prior)

`prior` is the moving average P̂ *before* this step; it starts uniform and the caller keeps the new one. Half-precision
logits are computed in float32. Nothing here branches on data, so all of it compiles and can be captured in a graph
(the `pinv` form excepted). A row of weight 2 counts like two rows; without weights all count alike. No gradient flows
through `prior`, thresholds, masks, weights or pseudo-labels; it does flow through `logits_weak` in `cap` and
`supplement`, which is the whole of CAP: with a constant marginal it is cross-entropy.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from cadr.errors import DataError
from cadr.estimate import aipw as risks
from cadr.estimate.prior import (
    Form,
    at_least_float32,
    at_least_one_row,
    log_marginal,
    mean_of,
    one_per_class,
    row_weights,
    update_prior,
)

__all__ = ["aipw", "cadr", "cai", "cap", "supplement", "update_prior"]


def cap(
    logits_labelled: Tensor,
    labels: Tensor,
    logits_weak: Tensor,
    prior: Tensor,
    form: Form = "straight_through",
    *,
    labelled_weights: Tensor | None = None,
    unlabelled_weights: Tensor | None = None,
) -> Tensor:
    """Class-aware propensity: cross-entropy + J, where J is the mean of `correction` over the labelled rows."""
    return _cap(logits_labelled, labels, log_marginal(logits_weak, prior, form, unlabelled_weights), labelled_weights)


def cai(
    logits_weak: Tensor,
    logits_strong: Tensor,
    prior: Tensor,
    threshold: float = 0.95,
    beta: float = 0.5,
    *,
    unlabelled_weights: Tensor | None = None,
) -> Tensor:
    """Class-aware imputation: FixMatch's loss, mean over all rows, with a threshold per class. `prior` is the new P̂."""
    limits = thresholds(one_per_class(prior, logits_weak, "prior"), threshold, beta)
    imputed = impute(predictions(at_least_one_row(logits_weak, "logits_weak")), limits)
    return mean_of(
        imputed.mask * cross_entropy(logits_strong, imputed.labels), unlabelled_weights, "unlabelled_weights"
    )


def supplement(
    logits_labelled: Tensor,
    logits_weak: Tensor,
    prior: Tensor,
    threshold_prior: Tensor,
    threshold: float = 0.95,
    beta: float = 0.5,
    form: Form = "straight_through",
    *,
    labelled_weights: Tensor | None = None,
    unlabelled_weights: Tensor | None = None,
) -> Tensor:
    """L_supp: minus CAP's correction at the predicted labels of the confidently predicted labelled rows."""
    limits = thresholds(one_per_class(threshold_prior, logits_labelled, "threshold_prior"), threshold, beta)
    marginal = log_marginal(logits_weak, prior, form, unlabelled_weights)
    return _supplement(logits_labelled, marginal, limits, labelled_weights)


def cadr(
    logits_labelled: Tensor,
    labels: Tensor,
    logits_weak: Tensor,
    logits_strong: Tensor,
    prior: Tensor,
    momentum: float = 0.99,
    threshold: float = 0.95,
    beta: float = 0.5,
    form: Form = "straight_through",
    *,
    labelled_weights: Tensor | None = None,
    unlabelled_weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The whole of CADR: the loss, and P̂ after this step."""
    new_prior = update_prior(prior, logits_weak, momentum, unlabelled_weights=unlabelled_weights)
    # One for both: CAP's gradient and the supplement's nearly cancel, and must not be rounded before they do.
    marginal = log_marginal(logits_weak, prior, form, unlabelled_weights)
    loss = (
        _cap(logits_labelled, labels, marginal, labelled_weights)
        + cai(logits_weak, logits_strong, new_prior, threshold, beta, unlabelled_weights=unlabelled_weights)
        + _supplement(logits_labelled, marginal, thresholds(new_prior, threshold, beta), labelled_weights)
    )
    return loss, new_prior


def aipw(observed: Tensor, imputed: Tensor, missing: Tensor, propensity: Tensor) -> Tensor:
    """Augmented inverse-propensity risk: mean of imputed + (1 − m)/p · (observed − imputed).

    `observed` and `propensity` may hold anything where the label is missing.
    """
    return risks.aipw(observed, imputed, missing, propensity).value


def _cap(logits_labelled: Tensor, labels: Tensor, marginal: Tensor, weights: Tensor | None) -> Tensor:
    fit = mean_of(cross_entropy(logits_labelled, labels), weights, "labelled_weights")
    return fit + mean_of(correction(marginal, labels, weights=weights), weights, "labelled_weights")


def _supplement(logits_labelled: Tensor, marginal: Tensor, limits: Tensor, weights: Tensor | None) -> Tensor:
    imputed = impute(predictions(logits_labelled), limits)
    corrections = correction(marginal, imputed.labels, weights=weights)
    return -mean_of(imputed.mask * corrections, weights, "labelled_weights")


# The pieces the above are made of; the algorithms, which have more options, are made of them too.

Normaliser = Literal["jensen", "none"]


class Imputed(NamedTuple):
    labels: Tensor  # (n,) the most probable class
    mask: Tensor  # (n,) 1 where the confidence is above the class's threshold


# PyTorch's own default, −100, is a number that people mark missing labels with: they would count as a loss of zero.
_NO_CLASS = -(2**31)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Row by row, (n,); the targets are classes, or probabilities."""
    return F.cross_entropy(at_least_float32(logits), targets, ignore_index=_NO_CLASS, reduction="none")


def predictions(logits: Tensor) -> Tensor:
    """Class probabilities without a gradient."""
    return F.softmax(at_least_float32(logits.detach()), dim=1)


def correction(
    log_marginal: Tensor, classes: Tensor, normaliser: Normaliser = "jensen", weights: Tensor | None = None
) -> Tensor:
    """log p̃_{z_i} + log mean_j 1/p̃_{z_j}, row by row: what CAP adds to cross-entropy.

    Its mean over the rows, J, is a Jensen gap: non-negative, blind to the scale of p̃, zero when p̃ is equal over the
    classes present. Without the normaliser it is the paper's −log of 1/P(y), which has no lower bound.
    """
    at_least_one_row(classes, "the labelled batch")
    if classes.ndim != 1 or classes.is_floating_point():
        raise DataError(f"Labels must be whole numbers of shape (n,), got {classes.dtype} of {tuple(classes.shape)}.")
    # A product with a one-hot matrix, because the backward of an index adds up in no fixed order on a GPU.
    one_hot = classes.unsqueeze(1) == torch.arange(log_marginal.shape[0], device=classes.device)
    rows = (one_hot * log_marginal).sum(1)
    if normaliser == "none":
        return rows
    if weights is None:
        return rows + (torch.logsumexp(-rows, dim=0) - math.log(rows.shape[0]))
    w = row_weights(weights, rows, "labelled_weights")
    return rows + (torch.logsumexp(w.log() - rows, dim=0) - w.sum().log())


@torch.no_grad()
def thresholds(prior: Tensor, threshold: float = 0.95, beta: float = 0.5, floor: float = 0.0) -> Tensor:
    """Eq. 11, (C,): τ_c = τ_o (P̂_c / max P̂)^β; β = 0 gives FixMatch's one threshold."""
    prior = at_least_float32(prior)
    return (threshold * (prior / prior.amax()) ** beta).clamp(min=floor)


@torch.no_grad()
def impute(predicted: Tensor, thresholds: Tensor) -> Imputed:
    """Pseudo-labels, and which of them are used: confidence strictly above the threshold of the predicted class."""
    confidence, labels = predicted.max(dim=1)
    return Imputed(labels, (confidence > thresholds[labels]).to(predicted.dtype))
