"""What held-out labels say that are missing not at random, against rows whose labels nobody has taken away."""

import numpy as np
import pytest
from scipy.stats import binomtest

from cadr.inference.accuracy_notes import caution_about_number, over_classes, weighted_accuracy, wilson


def test_weighting_undoes_the_labelling():
    """The second class is labelled ten times less often, and half of it is mistaken: 95.8 % of the labels are right."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, 400_000)
    right = np.where(truth == 0, True, random.random(len(truth)) < 0.5)
    propensity = np.array([0.5, 0.05])
    labelled = random.random(len(truth)) < propensity[truth]
    guess = np.where(right, truth, 1 - truth)
    confusion = np.zeros((2, 2), dtype=int)
    np.add.at(confusion, (truth[labelled], guess[labelled]), 1)
    assert 100 * right[labelled].mean() > 94
    assert weighted_accuracy(confusion.tolist(), propensity.tolist()) == pytest.approx(100 * right.mean(), abs=0.5)
    assert weighted_accuracy([[3, 1], [0, 4]], [0.3, 0.3]) == pytest.approx(100 * 7 / 8)
    assert weighted_accuracy([[3, 1], [0, 0]], [0.3, 0.3]) == pytest.approx(75.0)  # a class that was not judged


def test_classes_that_could_not_be_judged_are_said():
    assert over_classes([50.0, 0.0]) == "the classes"
    assert over_classes([50.0, None, None]) == "1 of 3 classes"


def test_one_label_is_singular():
    assert "evaluated on only 1 held-out label; " in caution_about_number(100.0, 1, "validation")
    assert "evaluated on only 2 test examples; the 95 % interval is " in caution_about_number(100.0, 2, "test")


@pytest.mark.parametrize(("right", "n"), [(0, 5), (12, 12), (7, 10), (150, 299)])
def test_the_interval_is_wilsons(right, n):
    expected = binomtest(right, n).proportion_ci(0.95, "wilson")
    assert wilson(right / n, n) == pytest.approx((expected.low, expected.high), abs=1e-4)


@pytest.mark.parametrize("n", [5, 10, 15, 20, 23])
@pytest.mark.parametrize(("accuracy", "end"), [(0.0, "interval is 0 to "), (100.0, " to 100 %")])
def test_no_interval_passes_none_or_all(n, accuracy, end):
    assert end in caution_about_number(accuracy, n, "test")
