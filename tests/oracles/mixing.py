"""The Π-model, MixMatch and ReMixMatch on a linear model x W, example by example.

Where a method stops the gradient, the value is taken at `held` weights. Mixing weights and partners are given: random
numbers are somebody else's concern.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .rivals import align
from .softmax import Array, Indices, log_softmax, softmax


def cross_entropy(logits: Array, target: Array) -> float:
    return float(-(target * log_softmax(logits[None])[0]).sum())


def pi_model(labelled: Array, labels: Indices, first: Array, second: Array, W: Array, held: Array, w: float) -> float:
    supervised = [-log_softmax(x[None] @ W)[0, y] for x, y in zip(labelled, labels, strict=True)]
    squares = [(softmax(a[None] @ held)[0] - softmax(b[None] @ W)[0]) ** 2 for a, b in zip(first, second, strict=True)]
    return float(np.mean(supervised) + w * np.mean(squares))


def sharpen(p: Array, T: float) -> Array:
    raised = p ** (1.0 / T)
    return np.asarray(raised / raised.sum(), dtype=np.float64)


def mix(rows: Sequence[Array], partners: Sequence[int], shares: Sequence[float]) -> list[Array]:
    return [shares[i] * rows[i] + (1.0 - shares[i]) * rows[partners[i]] for i in range(len(rows))]


def mixmatch(
    labelled: Array,
    labels: Indices,
    views: Sequence[Array],
    W: Array,
    held: Array,
    partners: Sequence[int],
    shares: Sequence[float],
    T: float,
    w: float,
) -> float:
    """Cross-entropy on mixed labelled rows, and w times the squared error on mixed unlabelled ones."""
    classes = W.shape[1]
    guesses = []
    for i in range(len(views[0])):
        mean = sum(softmax(view[i][None] @ held)[0] for view in views) / len(views)
        guesses.append(sharpen(mean, T))
    rows = [*labelled, *(x for view in views for x in view)]
    targets = [np.eye(classes)[y] for y in labels] + guesses * len(views)
    mixed, mixed_targets = mix(rows, partners, shares), mix(targets, partners, shares)
    n = len(labels)
    first = [cross_entropy(x @ W, t) for x, t in zip(mixed[:n], mixed_targets[:n], strict=True)]
    rest = [(t - softmax(x[None] @ W)[0]) ** 2 for x, t in zip(mixed[n:], mixed_targets[n:], strict=True)]
    return float(np.mean(first) + w * np.mean(rest))


def remixmatch(
    labelled: Array,
    labels: Indices,
    weak: Array,
    strong: Sequence[Array],
    W: Array,
    held: Array,
    partners: Sequence[int],
    shares: Sequence[float],
    target: Array,
    recent: Array,
    T: float,
    weights: tuple[float, float, float],
) -> tuple[float, float, float, float]:
    """Images (n, 1, h, h); W has a column per class and four for the turns. Supervised, mixed, unmixed, rotation."""
    classes = W.shape[1] - 4

    def logits(image: Array, weight: Array) -> Array:
        return np.asarray(image.reshape(-1) @ weight, dtype=np.float64)

    predicted = softmax(np.stack([logits(x, held)[:classes] for x in weak]))
    guesses = [sharpen(p, T) for p in align(predicted, target, recent)]
    rows = [*labelled, *weak, *(x for view in strong for x in view)]
    targets = [np.eye(classes)[y] for y in labels] + guesses * (1 + len(strong))
    mixed, mixed_targets = mix(rows, partners, shares), mix(targets, partners, shares)
    losses = [cross_entropy(logits(x, W)[:classes], t) for x, t in zip(mixed, mixed_targets, strict=True)]
    n, u = len(labels), len(weak)
    unmixed = [cross_entropy(logits(x, W)[:classes], g) for x, g in zip(strong[0], guesses, strict=True)]
    rotation = []
    for turns, part in enumerate(np.array_split(np.arange(u), 4)):
        for i in part:
            turned = np.rot90(strong[0][i][0], turns)[None]
            rotation.append(cross_entropy(logits(turned, W)[classes:], np.eye(4)[turns]))
    means = [float(np.mean(part)) for part in (losses[:n], losses[n:], unmixed, rotation)]
    return means[0], weights[0] * means[1], weights[1] * means[2], weights[2] * means[3]
