"""CAP, CAI, the supplement and CADR, as the authors' code defines them, row by row.

`held_…` are the logits at which stop-gradients (masks, pseudo-labels, the value of the moving average) are evaluated;
see `marginal`.
"""

from __future__ import annotations

import numpy as np

from .marginal import log_marginal, update_prior
from .softmax import Array, Indices, cross_entropy, log_softmax, logsumexp, softmax


def log_normalised(log_p: Array, classes: Indices) -> Array:
    """log p̃_{z_i} + log mean_j 1/p̃_{z_j} for every i, i.e. −log of the normalised inverse ṽ_i."""
    chosen = log_p[classes]
    normalised: Array = chosen + logsumexp(-chosen, axis=0) - np.log(len(classes))
    return normalised


def jensen_gap(log_p: Array, classes: Indices) -> float:
    """J(z) = mean_i log p̃_{z_i} + log mean_j 1/p̃_{z_j} ≥ 0."""
    return float(log_normalised(log_p, classes).mean())


def cap(
    labelled: Array, labels: Indices, weak: Array, prior: Array, form: str, *, held_weak: Array | None = None
) -> float:
    """Cross-entropy + J(y)."""
    return cross_entropy(labelled, labels) + jensen_gap(log_marginal(weak, prior, form, held_weak), labels)


def thresholds(prior: Array, threshold: float, beta: float) -> Array:
    """τ_c = τ_o (P̂_c / max P̂)^β, Eq. 11."""
    return np.asarray(threshold * (prior / prior.max()) ** beta, dtype=np.float64)


def pseudo_labels(logits: Array) -> Indices:
    return np.asarray(logits.argmax(axis=1), dtype=np.int64)


def margin(logits: Array, prior: Array, threshold: float, beta: float) -> Array:
    """Confidence − threshold of the predicted class; a row is used where this is strictly positive."""
    excess: Array = softmax(logits).max(axis=1) - thresholds(prior, threshold, beta)[pseudo_labels(logits)]
    return excess


def mask(logits: Array, prior: Array, threshold: float, beta: float) -> Array:
    return np.asarray(margin(logits, prior, threshold, beta) > 0.0, dtype=np.float64)


def consistency(strong: Array, targets: Indices, used: Array) -> float:
    """Masked cross-entropy of the strong views, divided by the number of all rows."""
    total = 0.0
    for row, target, keep in zip(log_softmax(strong), targets, used, strict=True):
        total += -row[target] if keep else 0.0
    return float(total / len(strong))


def fixmatch(weak: Array, strong: Array, threshold: float) -> float:
    """FixMatch's unlabelled loss with one threshold for all classes, strict as in every method here."""
    used = np.asarray(softmax(weak).max(axis=1) > threshold, dtype=np.float64)
    return consistency(strong, pseudo_labels(weak), used)


def cai(
    weak: Array, strong: Array, prior: Array, threshold: float, beta: float, *, held_weak: Array | None = None
) -> float:
    held = weak if held_weak is None else held_weak
    return consistency(strong, pseudo_labels(held), mask(held, prior, threshold, beta))


def supplement(
    labelled: Array,
    weak: Array,
    prior: Array,
    threshold_prior: Array,
    threshold: float,
    beta: float,
    form: str,
    *,
    held_labelled: Array | None = None,
    held_weak: Array | None = None,
) -> float:
    """−mean_i m_i [log p̃_{ŷ_i} + log mean_j 1/p̃_{ŷ_j}], the normaliser over all j, masked or not."""
    held = labelled if held_labelled is None else held_labelled
    used = mask(held, threshold_prior, threshold, beta)
    per_row = log_normalised(log_marginal(weak, prior, form, held_weak), pseudo_labels(held))
    return float(-(used * per_row).mean())


def cadr(
    labelled: Array,
    labels: Indices,
    weak: Array,
    strong: Array,
    prior: Array,
    momentum: float,
    threshold: float,
    beta: float,
    form: str,
) -> tuple[float, Array]:
    """The marginal uses the buffer before this step's update, the thresholds the buffer after it."""
    new = update_prior(prior, weak, momentum)
    total = (
        cap(labelled, labels, weak, prior, form)
        + cai(weak, strong, new, threshold, beta)
        + supplement(labelled, weak, prior, new, threshold, beta, form)
    )
    return total, new
