"""Which labels are wrong, by probabilities that were not fitted to them; how many of those named are right after all.

A model that is right about 63 % of the labels contradicts 37 % of them, all of which may be right. What tells is a
label that the model's own probabilities hardly allow. With p the probability of the label as given, among C classes,

    P(label) = (1 − ε) p + ε (1 − p)/(C − 1),

where ε is the share of wrong labels and each wrong class is as likely as another. ε and a temperature of the
probabilities are fitted together, so that a model which is too sure of itself does not make labels look wrong; the
logarithm of the temperature has a normal prior, for any mistake could be put down to a model that is ever so much too
sure. Where ε = 0 fits as well, the model's own mistakes explain what it contradicts, and no label is named.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FALSE_ALARMS = 0.2  # share of right labels among those named that is aimed at
_SURPRISE = 4.0  # twice the logarithm that ε must gain: one in fifty by chance where all labels are right
_CALIBRATED = (
    0.4  # standard deviation of the logarithm of the temperature that is expected: probabilities mean something
)
_TEMPERATURES = np.geomspace(0.1, 8.0, 45)
_SHARES = np.concatenate([[0.0], np.geomspace(1e-3, 0.4, 40)])
_TINY = 1e-300

Floats = NDArray[np.float64]


class WrongLabels(NamedTuple):
    """Places of the labels that may be wrong, the surest first."""

    places: NDArray[np.int64]
    probability: Floats  # that each of these is wrong
    contradicted: int  # labels that are not the most probable class

    @property
    def right_after_all(self) -> float:
        """How many of those named are expected to be right."""
        return float((1.0 - self.probability).sum())


def wrong_labels(probabilities: Floats, labels: NDArray[np.int64]) -> WrongLabels:
    """Of (n, C) probabilities and (n,) labels."""
    n, classes = probabilities.shape
    contradicted = int((probabilities.argmax(1) != labels).sum())
    none = WrongLabels(np.empty(0, dtype=np.int64), np.empty(0), contradicted)
    if contradicted == 0 or 2 * contradicted > n:  # of a model that is mostly mistaken nothing follows
        return none
    logs = np.log(np.maximum(probabilities, _TINY))
    given = np.stack([_softmax_at(logs / t, labels) for t in _TEMPERATURES])  # (temperatures, n)
    other = (1.0 - given) / (classes - 1)
    likelihood = np.stack([np.log((1 - e) * given + e * other + _TINY).sum(1) for e in _SHARES], axis=1)
    likelihood -= 0.5 * (np.log(_TEMPERATURES)[:, None] / _CALIBRATED) ** 2
    best = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
    if 2.0 * (likelihood[best] - likelihood[:, 0].max()) < _SURPRISE:
        return none
    share, p, q = _SHARES[best[1]], given[best[0]], other[best[0]]
    wrong = share * q / ((1 - share) * p + share * q)
    order = np.argsort(-wrong, kind="stable")
    right = np.cumsum(1.0 - wrong[order]) / np.arange(1, n + 1)
    named = order[: int((right <= FALSE_ALARMS).sum())]  # the mean of a sorted list rises: these are the first ones
    return WrongLabels(named, wrong[named], contradicted)


def _softmax_at(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    logits = logits - logits.max(1, keepdims=True)
    of_all = np.exp(logits)
    found: Floats = of_all[np.arange(len(labels)), labels] / of_all.sum(1)
    return found
