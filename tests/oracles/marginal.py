"""The predicted class marginal: the buffer P̂ (Eq. 10) and its three differentiable forms p̃.

`held` are the logits at which every stop-gradient is evaluated. It defaults to the logits themselves, which gives the
value; a finite difference moves the logits and leaves `held` where it was, which gives the gradient.
"""

from __future__ import annotations

import numpy as np

from .softmax import Array, log_softmax, logsumexp, softmax

FORMS = ("straight_through", "batch", "pinv")
PINV_UPPER = 5.0  # the authors' clip
PINV_FLOOR = 1e-12


def update_prior(prior: Array, logits_weak: Array, momentum: float) -> Array:
    """P̂ ← μ P̂ + (1 − μ) · mean over the rows of softmax."""
    updated: Array = momentum * prior + (1.0 - momentum) * softmax(logits_weak).mean(axis=0)
    return updated


def log_batch_mean(logits_weak: Array) -> Array:
    """ℓ_c = log of the mean of P(c | x) over the batch, exact even where every P(c | x) underflows."""
    mean: Array = logsumexp(log_softmax(logits_weak), axis=0) - np.log(len(logits_weak))
    return mean


def pinv_weights(logits_weak: Array, prior: Array) -> Array:
    """w = clip(P̂ · pinv(Q), 0, 5), one weight a row.

    P̂ · pinv(Q) is by definition the minimum-norm least-squares solution of w Q = P̂, so it is solved as such.
    """
    Q = softmax(logits_weak)
    cutoff = max(Q.shape) * np.finfo(np.float64).eps
    weights = np.linalg.lstsq(Q.T, prior, rcond=cutoff)[0]
    clipped: Array = np.clip(weights, 0.0, PINV_UPPER)
    return clipped


def log_marginal(logits_weak: Array, prior: Array, form: str, held: Array | None = None) -> Array:
    """log p̃."""
    held = logits_weak if held is None else held
    if form == "straight_through":  # the value of the moving average, the gradient of the batch
        return np.log(prior) + (log_batch_mean(logits_weak) - log_batch_mean(held))
    if form == "batch":
        return log_batch_mean(logits_weak)
    if form == "pinv":
        weighted: Array = np.maximum(pinv_weights(held, prior) @ softmax(logits_weak), PINV_FLOOR)
        return np.log(weighted)
    raise ValueError(form)
