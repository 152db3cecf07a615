"""Gradients of the oracles by hand, and central differences to check the hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import losses
from .marginal import PINV_FLOOR, log_marginal, pinv_weights, update_prior
from .softmax import Array, Indices, log_softmax, logsumexp, softmax


def central(function: Callable[[Array], float], at: Array, step: float = 1e-5) -> Array:
    """(f(x + h) − f(x − h)) / 2h, one coordinate after the other."""
    gradient = np.zeros_like(at)
    for position in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[position] += step
        down[position] -= step
        gradient[position] = (function(up) - function(down)) / (2.0 * step)
    return gradient


def one_hot(labels: Indices, classes: int) -> Array:
    return np.asarray(np.eye(classes)[labels], dtype=np.float64)


def cross_entropy(logits: Array, labels: Indices, weights: Array | None = None) -> Array:
    """(softmax − one-hot) / rows, every row times its weight."""
    weights = np.ones(len(labels)) if weights is None else weights
    return weights[:, None] * (softmax(logits) - one_hot(labels, logits.shape[1])) / len(labels)


def through_marginal(outer: Array, weak: Array, prior: Array, form: str) -> Array:
    """The chain from ∂L/∂log p̃_c (`outer`) to the unlabelled weak logits."""
    Q = softmax(weak)
    if form == "pinv":  # p̃ = w Q with w constant; a floored class passes nothing on
        p = pinv_weights(weak, prior) @ Q
        by_probability = np.outer(pinv_weights(weak, prior), np.where(p > PINV_FLOOR, outer / np.maximum(p, 1e-300), 0))
        centred: Array = Q * (by_probability - (by_probability * Q).sum(axis=1, keepdims=True))
        return centred
    # ∂ℓ_c/∂log P(c|x_u) is the share of row u in class c: a softmax over the rows, finite when all of them underflow.
    log_q = log_softmax(weak)
    share = np.exp(log_q - logsumexp(log_q, axis=0)[None, :])
    by_log_probability = share * outer[None, :]
    by_logits: Array = by_log_probability - Q * by_log_probability.sum(axis=1, keepdims=True)
    return by_logits


def by_log_marginal(log_p: Array, classes: Indices, weights: Array) -> Array:
    """∂/∂log p̃_c of mean_i weight_i [log p̃_{z_i} + log mean_j 1/p̃_{z_j}].

    With weights of one this is f_c (1 − H / p̃_c), H the harmonic mean of p̃ over the rows.
    """
    chosen = log_p[classes]
    inverse_share = np.exp(-chosen - logsumexp(-chosen, axis=0))  # (1/p̃_{z_j}) / Σ_k 1/p̃_{z_k}
    gradient = np.zeros_like(log_p)
    for row, c in enumerate(classes):
        gradient[c] += weights[row] / len(classes) - weights.mean() * inverse_share[row]
    return gradient


def cap(labelled: Array, labels: Indices, weak: Array, prior: Array, form: str) -> tuple[Array, Array]:
    """By labelled logits, by unlabelled weak logits."""
    outer = by_log_marginal(log_marginal(weak, prior, form), labels, np.ones(len(labels)))
    return cross_entropy(labelled, labels), through_marginal(outer, weak, prior, form)


def cai(weak: Array, strong: Array, prior: Array, threshold: float, beta: float) -> Array:
    """By strong logits; nothing flows into the weak ones."""
    return cross_entropy(strong, losses.pseudo_labels(weak), losses.mask(weak, prior, threshold, beta))


def supplement(
    labelled: Array, weak: Array, prior: Array, threshold_prior: Array, threshold: float, beta: float, form: str
) -> Array:
    """By unlabelled weak logits; nothing flows into the labelled ones."""
    used = losses.mask(labelled, threshold_prior, threshold, beta)
    outer = -by_log_marginal(log_marginal(weak, prior, form), losses.pseudo_labels(labelled), used)
    return through_marginal(outer, weak, prior, form)


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
) -> tuple[Array, Array, Array]:
    """By labelled, unlabelled weak and unlabelled strong logits."""
    new = update_prior(prior, weak, momentum)
    by_labelled, by_weak = cap(labelled, labels, weak, prior, form)
    by_weak = by_weak + supplement(labelled, weak, prior, new, threshold, beta, form)
    return by_labelled, by_weak, cai(weak, strong, new, threshold, beta)
