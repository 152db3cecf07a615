"""Rounds of imputation: which rows take part, in which shares, and that they help."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from cadr.ensemble.discriminant import Discriminant
from cadr.ensemble.estimator import Estimator
from cadr.ensemble.imputation import fit_imputed, fit_labels, neutral, shares_of_unlabelled, surest
from cadr.ensemble.logistic import Logistic
from tests.ensemble.problems import biased

PROBLEM = biased()
KNOWN = ~PROBLEM.missing
SHARES = np.bincount(PROBLEM.truth) / len(PROBLEM.truth)


def test_the_surest_of_every_class_take_part():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.55, 0.45], [0.4, 0.6], [0.3, 0.7]])
    np.testing.assert_array_equal(surest(probabilities, 0.5), [True, True, False, False, False, True])
    assert surest(probabilities, 1.0).all()


def test_what_is_left_for_rows_without_a_label():
    left = shares_of_unlabelled(np.array([0.5, 0.5]), np.array([0, 0, 0, 1]), 6)
    np.testing.assert_allclose(left, [2 / 6, 4 / 6])
    all_labelled = shares_of_unlabelled(np.array([0.1, 0.9]), np.array([0, 0, 0, 1]), 6)
    np.testing.assert_allclose(all_labelled, np.array([0.5, 8.0]) / 8.5)  # half a row, not less than none


class _Spy:
    """A learner that keeps what it is given."""

    density, unlabelled_weight = False, None

    def __init__(self):
        self.seen = []

    def fit(self, x, targets, weights, start=None):
        self.seen.append((x, targets, weights))
        return Logistic().fit(x, targets, weights)


def test_rounds():
    spy, labelled, rest = _Spy(), PROBLEM.x[KNOWN], PROBLEM.x[PROBLEM.missing]
    fit_imputed(spy, labelled, PROBLEM.labels[KNOWN], rest, SHARES, rounds=4)
    n = len(labelled)
    first, *others = spy.seen
    assert len(first[0]) == n
    np.testing.assert_allclose(np.bincount(PROBLEM.labels[KNOWN], first[2]) / n, 0.1)  # all classes alike
    sizes = [len(x) - n for x, _, _ in others]
    assert sizes == sorted(sizes)
    assert sizes[0] == pytest.approx(len(rest) / 4, rel=0.1)
    assert sizes[-1] == len(rest)
    for _, targets, weights in others:
        np.testing.assert_allclose(np.bincount(PROBLEM.labels[KNOWN], weights[:n]) / n, SHARES)
        assert weights[n:].sum() == pytest.approx(n)
        np.testing.assert_allclose(targets.sum(1), 1)
    last = others[-1][1][n:].argmax(1)
    np.testing.assert_allclose(np.bincount(last, minlength=10) / len(last), 0.1, atol=0.03)


FOREST = RandomForestClassifier(40, min_samples_leaf=2, random_state=0)


@pytest.mark.parametrize(
    ("learner", "gain"),
    [(Logistic(), 0.03), (Discriminant(), 0.01), (Estimator(FOREST), 0.03)],
    ids=lambda one: type(one).__name__,
)
def test_imputation_helps(learner, gain):
    labelled, labels, rest = PROBLEM.x[KNOWN], PROBLEM.labels[KNOWN], PROBLEM.x[PROBLEM.missing]
    rounds = 3 if isinstance(learner, Estimator) else 8
    before = neutral(learner, fit_labels(learner, labelled, labels, 10), PROBLEM.x, None)
    after = neutral(learner, fit_imputed(learner, labelled, labels, rest, SHARES, rounds), PROBLEM.x, SHARES)
    assert PROBLEM.accuracy(after) > PROBLEM.accuracy(before) + gain
