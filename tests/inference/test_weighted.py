"""The interval of an accuracy that is judged on few labels, each standing for one over its propensity rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from cadr.inference.evaluation import weighted, weighted_interval


def evaluation(right, judged, on="validation"):
    """Of two classes."""
    confusion = [[right[0], judged[0] - right[0]], [judged[1] - right[1], right[1]]]
    return {"on": on, "confusion": confusion, "recall": [100 * r / n for r, n in zip(right, judged, strict=True)]}


def test_of_one_class_it_is_jeffreys_interval():
    found = weighted_interval([[9, 1], [0, 0]], [0.1, 0.5], [0.0, 0.0])
    np.testing.assert_allclose(found, 100 * beta(9.5, 1.5).ppf([0.025, 0.975]), atol=1.0)


def test_all_right_is_not_certain():
    """A table with 11 labels held out: 100 %, weighted 100 %, and 46 of 289 rows were wrong."""
    found = weighted(evaluation((9, 2), (9, 2)), [0.1, 0.01])
    assert found is not None
    assert found.accuracy == 100.0
    assert found.low < 100 * (1 - 46 / 289) < found.high == 100
    wrong = weighted(evaluation((0, 0), (9, 2)), [0.1, 0.01])
    assert wrong is not None
    assert wrong.low == 0 < wrong.high


def test_uncertain_propensities_widen_it():
    judged = evaluation((18, 5), (20, 10))
    known = weighted(judged, [0.1, 0.02])
    vague = weighted(judged, [0.1, 0.02], [(0.05, 0.2), (0.002, 0.2)])
    assert known is not None
    assert vague is not None
    assert known.accuracy == vague.accuracy
    assert vague.low < known.low - 3


def test_nothing_is_weighted_that_was_not_held_out_of_the_labels():
    assert weighted(evaluation((9, 2), (9, 2), on="test"), [0.1, 0.01]) is None


@pytest.mark.parametrize("judged", [(20, 1), (10, 10), (6, 2), (40, 4)])
def test_it_covers_the_truth(judged):
    """95 % intervals of 600 accuracies of models that find more than half of each class."""
    random, propensity = np.random.default_rng(1), np.array([0.2, 0.02])
    weight = np.array(judged) / propensity
    covered = []
    for recall in random.uniform(0.5, 1.0, (600, 2)):
        right = random.binomial(judged, recall)
        wrong = np.array(judged) - right
        low, high = weighted_interval([[right[0], wrong[0]], [wrong[1], right[1]]], propensity.tolist(), [0.0, 0.0])
        covered.append(low <= 100 * (weight * recall).sum() / weight.sum() <= high)
    assert np.mean(covered) >= 0.93
