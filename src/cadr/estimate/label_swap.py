"""Whether classes have swapped labels, judged by what surrounds the labelled examples.

A class with one or two labels can be found and yet be given another's name: the network learns the few labelled
examples by heart, and its pseudo-labels never meet a contradiction. Its last layers then say nothing about those
examples, but the layers before them still put each among its like. What its like are called is evidence of what the
name stands for: with probabilities p_j of the k nearest unlabelled examples of labelled example i, and their mean q
over all,

    L(y, c) = Σ_{i: y_i = y} log (v_ic + ε)/(q_c + ε),        v_i = the mean of p_j over the neighbours of i,

is how well the name y fits output c; where there are features of several layers, the mean over them, for what one layer
says of one or two examples is noisy. Of all ways to give the outputs names, that with the largest sum of all
L(y, output of y) is taken, less 1/2 for every name that moves: two names are exchanged where that gains more than 1. If
the sum is so small that the model cannot be said to know names at all, none moves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_PART = 1 / 50  # of a class of average size: how many neighbours an example is judged by
_FEWEST = 5  # neighbours
_FLOOR = 0.01  # ε: no single example says more than log 100
_LEAST = (
    1.0  # what an exchange of two must gain: right names lose several, and noise gains tenths where classes are young
)
_KNOWN = math.log(2)  # a label: names that are borne around their labelled examples twice as often as anywhere
_CHUNK = 1000  # labelled examples whose distances are held at a time


def fit_of_names(seen: Sequence[Tensor], labels: Tensor, others: Sequence[Tensor], predicted: Tensor) -> Tensor:
    """(C, C) how well each name (row) fits each output (column).

    `seen` and `others` hold, layer by layer, the features (m, d) of the labelled and (n, d) of unlabelled examples,
    `labels` (m,) the names and `predicted` (n, C) the model's probabilities.
    """
    fits = []
    for few, many in zip(seen, others, strict=True):
        fit = torch.zeros(predicted.shape[1], predicted.shape[1], dtype=torch.float64)
        evidence = against_all(around(few, many, predicted, _FEWEST), predicted)
        fits.append(fit.index_add_(0, labels.cpu(), evidence.double().cpu()))
    return torch.stack(fits).mean(0)


def around(seen: Tensor, others: Tensor, predicted: Tensor, fewest: int, itself: bool = True) -> Tensor:
    """(m, C) the v of labelled examples in one layer, by a fiftieth of a class of average size, but `fewest` at least.

    Features are compared by the cosine, each on its own scale. Where those seen are the others themselves, in their
    order, `itself` says whether an example is one of its own neighbours.
    """
    near = min(len(others) - (not itself), max(fewest, int(len(others) * _PART / predicted.shape[1])))
    centre, scale = others.mean(0), others.std(0, correction=0)
    scale = torch.where(scale > 0, scale, 1.0)
    directions = _unit((others - centre) / scale)
    votes = []
    for start, some in enumerate(torch.split(seen, _CHUNK)):
        alike = _unit((some - centre) / scale) @ directions.T
        if not itself:
            alike[torch.arange(len(some)), start * _CHUNK + torch.arange(len(some))] = -torch.inf
        votes.append(predicted[alike.topk(near, dim=1).indices].mean(1))
    return torch.cat(votes)


def against_all(votes: Tensor, predicted: Tensor) -> Tensor:
    """(m, C) the evidence for every name: how much oftener it is borne around an example than anywhere."""
    return torch.log((votes + _FLOOR) / (predicted.mean(0) + _FLOOR))


def exchanged(fit: Tensor, labels: int) -> tuple[Tensor, list[tuple[int, int]]]:
    """(C,) the output that should bear each name, and pairs to exchange one after another to get there, best first.

    `labels` is the number of labelled examples that `fit` is a sum over.
    """
    from scipy.optimize import linear_sum_assignment

    classes, values = torch.arange(len(fit)), fit.double().cpu().numpy()
    if not np.isfinite(values).all():
        return classes, []
    moved = 1.0 - np.eye(len(fit))
    outputs = linear_sum_assignment(values - _LEAST / 2 * moved, maximize=True)[1]
    if values[classes, outputs].sum() < _KNOWN * labels:
        return classes, []
    return torch.from_numpy(outputs), _exchanges(values, outputs.tolist())


def _exchanges(fit: NDArray[np.float64], outputs: list[int]) -> list[tuple[int, int]]:
    """Pairs that lead there, those of a cycle of names after one another, and the cycle that gains most first."""
    found, left = [], set(range(len(outputs)))
    while left:
        cycle = [min(left)]
        while outputs[cycle[-1]] != cycle[0]:
            cycle.append(outputs[cycle[-1]])
        left -= set(cycle)
        # y bears what z bore, z what followed it, and so on: each exchange puts one name right for good
        gain = sum(fit[y, outputs[y]] - fit[y, y] for y in cycle)
        found.append((gain, [(min(pair), max(pair)) for pair in pairwise(cycle)]))
    return [pair for _, pairs in sorted(found, key=lambda each: -each[0]) for pair in pairs]


def _unit(rows: Tensor) -> Tensor:
    return torch.nn.functional.normalize(rows, dim=1)


_FEWEST_AROUND_LABEL = 10  # neighbours: a wrong label, learned by heart, spreads to its very nearest


def doubtful(
    seen: Sequence[Tensor], labels: Tensor, others: Sequence[Tensor], predicted: Tensor
) -> tuple[Tensor, Tensor]:
    """(m,) whether each label is doubtful, and (m, C) how often each name is borne around it; as in `fit_of_names`."""
    votes = torch.stack(
        [around(*layer, predicted, _FEWEST_AROUND_LABEL) for layer in zip(seen, others, strict=True)]
    ).mean(0)
    return (votes.argmax(1) != labels) & (against_all(votes, predicted).argmax(1) != labels), votes
