"""The other methods' pseudo-labels, thresholds, weights and losses, row by row, from their papers and published code.

Every function takes and returns plain arrays; stop-gradients are evaluated at `held_…` logits as in `losses`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .softmax import Array, Indices, log_softmax, softmax


def class_weights(counts: Sequence[int], beta: float | None) -> Array:
    """Inverse counts (beta None), or (1 − b)/(1 − b^N); they add up to the number of classes."""
    raw = [1.0 / n if beta is None else (1.0 - beta) / (1.0 - beta**n) for n in counts]
    return np.asarray([len(counts) * w / sum(raw) for w in raw], dtype=np.float64)


def weighted_cross_entropy(logits: Array, labels: Indices, weights: Array) -> float:
    rows = log_softmax(logits)
    return float(np.mean([-weights[y] * rows[i, y] for i, y in enumerate(labels)]))


def soft_cross_entropy(logits: Array, targets: Array) -> Array:
    return np.asarray(-(targets * log_softmax(logits)).sum(axis=1), dtype=np.float64)


def align(predicted: Array, target: Array, mean: Array) -> Array:
    rows = []
    for p in predicted:
        scaled = [p[c] * (target[c] + 1e-6) / (mean[c] + 1e-6) for c in range(len(p))]
        rows.append([value / sum(scaled) for value in scaled])
    return np.asarray(rows, dtype=np.float64)


def softmatch_weights(confidence: Array, mean: float, variance: float, n_sigma: float) -> Array:
    """exp(−(min(max p − μ, 0))² n² / (2 σ²))."""
    below = [min(c - mean, 0.0) for c in confidence]
    return np.asarray([np.exp(-(b**2) * n_sigma**2 / (2.0 * variance)) for b in below], dtype=np.float64)


def flexmatch_thresholds(selected: Sequence[int], classes: int, threshold: float, *, warm_up: bool) -> Array:
    """τ a/(2 − a), a_c = count of c over the largest count; −1 (nothing selected) takes part during warm-up."""
    counted = {c: sum(1 for s in selected if s == c) for c in range(-1, classes)}
    largest = max(counted[c] for c in range(-1 if warm_up else 0, classes))
    shares = [counted[c] / largest if largest else 0.0 for c in range(classes)]
    return np.asarray([threshold * a / (2.0 - a) for a in shares], dtype=np.float64)


def fairness(strong: Array, used: Sequence[bool], model: Array, histogram: Array) -> float:
    """FreeMatch's Σ_c m_c log b_c: m ∝ P̂ over its histogram, b ∝ mean used strong prediction over its histogram."""
    rows = softmax(strong)[np.flatnonzero(used)]
    if len(rows) == 0:
        return 0.0
    found = np.bincount(rows.argmax(axis=1), minlength=strong.shape[1]) / len(rows)
    m = np.asarray([p / h if h > 0 else 0.0 for p, h in zip(model, histogram, strict=True)])
    b = np.asarray([p / h if h > 0 else 0.0 for p, h in zip(rows.mean(axis=0), found, strict=True)])
    return float((m / m.sum() * np.log(b / b.sum() + 1e-12)).sum())


def dash_rho(step: int, steps: int, start: float, decay: float, drop_every: int, warm_up: int) -> float:
    """ρ in units of 1/1024 of the run; 500 (everything) during warm-up."""
    epoch = step * 1024 // steps
    if epoch < warm_up:
        return 500.0
    return float(start * decay ** -((epoch - 1) // drop_every))


def transitions(batches: Sequence[tuple[Indices, Indices]], classes: int, kept: int) -> tuple[Array, dict[int, int]]:
    """PRG's matrix, mean of the last `kept` batches, by a plain loop over (positions, predicted classes)."""
    last: dict[int, int] = {}
    matrices = []
    for index, predicted in batches:
        matrix = np.zeros((classes, classes))
        for i, after in zip(index.tolist(), predicted.tolist(), strict=True):
            if i in last and last[i] != after:
                matrix[last[i], after] += 1
            last[i] = after
        matrices.append(matrix)
    return np.asarray(sum(matrices[-kept:]) / kept, dtype=np.float64), last


def guidance(moves: Array, mean: Array, alpha: float) -> Array:
    """H′ = (rows of the transition matrix, normalised, + α/(C − 1) on the diagonal) / q̄."""
    c = len(mean)
    h = np.zeros((c, c))
    for a in range(c):
        for b in range(c):
            share = moves[a, b] / moves[a].sum() if moves[a].sum() > 0 else 0.0
            h[a, b] = (share + (alpha / (c - 1) if a == b else 0.0)) / mean[b]
    return h


def rectify(predicted: Array, classes: Sequence[int], h: Array) -> Array:
    """p ∘ H′[class], normalised; a class of −1 leaves the row as it is."""
    rows = []
    for p, c in zip(predicted, classes, strict=True):
        row = p * h[c] if c >= 0 else p
        rows.append(row / row.sum())
    return np.asarray(rows)


def truncate(predicted: Array, counts: Array, alpha: float) -> Array:
    """DARP: class by class the ⌊α·M⌋ largest entries are kept and scaled to M in all; rows normalised."""
    scaled = np.zeros_like(predicted)
    for c, m in enumerate(counts):
        best = np.argsort(-predicted[:, c], kind="stable")[: int(alpha * m)]
        scaled[best, c] = predicted[best, c] * (m + 1e-6) / (predicted[best, c].sum() + 1e-6)
    scaled += 1e-6
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True), dtype=np.float64)


def refinement_objective(q: Array, p: Array) -> float:
    """Σ_i KL(q_i ‖ p_i) / H(p_i)."""
    entropy = -(p * np.log(p + 1e-6)).sum(axis=1)
    return float(((q * (np.log(q) - np.log(p))).sum(axis=1) / entropy).sum())
