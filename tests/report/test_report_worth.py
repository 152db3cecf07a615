"""Examples worth labelling: the criterion against the exact variance of the estimate, by going through all patterns."""

import itertools

import numpy as np
import pytest
import torch

from cadr.estimate.aipw import aipw
from cadr.report.examples import variance_removed


def exact_variance(loss, imputed, propensity):
    """Of the doubly robust estimate, over every pattern of who is labelled."""
    n = len(loss)
    values, chances = [], []
    for pattern in itertools.product([0, 1], repeat=n):
        labelled = np.array(pattern)
        chances.append(np.prod(np.where(labelled == 1, propensity, 1 - propensity)))
        given = (torch.from_numpy(a) for a in (loss, imputed, 1.0 - labelled, propensity))
        values.append(float(aipw(*given).value))
    mean = np.dot(chances, values)
    return np.dot(chances, (np.array(values) - mean) ** 2)


def problem(n=6, classes=3, seed=0):
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.ones(classes), size=n)
    propensity = np.array([0.8, 0.3, 0.05])
    labels = np.arange(n) % classes
    loss = -np.log(probabilities)
    return probabilities, propensity, labels, loss, (probabilities * loss).sum(1)


def test_a_label_removes_exactly_its_term_of_the_variance():
    _, propensity, labels, loss, imputed = problem()
    n = len(labels)
    observed = loss[np.arange(n), labels]
    chance = propensity[labels]
    before = exact_variance(observed, imputed, chance)
    terms = (1 - chance) / chance * (observed - imputed) ** 2
    assert before == pytest.approx(terms.sum() / n**2)
    for i in range(n):
        asked = chance.copy()
        asked[i] = 1.0
        assert before - exact_variance(observed, imputed, asked) == pytest.approx(terms[i] / n**2)


def test_the_expected_term_is_the_mean_over_the_classes_an_unlabelled_row_may_have():
    probabilities, propensity, _, loss, imputed = problem(n=4)
    expected = np.zeros(4)
    for i in range(4):
        given_missing = np.array([probabilities[i, y] * (1 - propensity[y]) for y in range(3)])
        given_missing /= given_missing.sum()
        for y in range(3):
            term = (1 - propensity[y]) / propensity[y] * (loss[i, y] - imputed[i]) ** 2
            expected[i] += given_missing[y] * term
    np.testing.assert_allclose(variance_removed(probabilities, propensity), expected)


def test_a_simulated_labelling_agrees_with_the_expectation():
    """Rows of one probability vector: labels drawn, kept by propensity; the mean term of the rows without one."""
    generator = np.random.default_rng(1)
    p, propensity, n = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.2, 0.1]), 400_000
    labels = generator.choice(3, size=n, p=p)
    missing = generator.random(n) > propensity[labels]
    loss = -np.log(p)
    terms = ((1 - propensity) / propensity * (loss - p @ loss) ** 2)[labels[missing]]
    assert variance_removed(p[None], propensity)[0] == pytest.approx(terms.mean(), rel=0.02)


def test_certain_rows_and_classes_that_are_always_labelled_are_not_worth_asking_for():
    certain = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert variance_removed(certain, np.array([0.1, 0.1]))[0] == pytest.approx(0.0, abs=1e-20)
    assert variance_removed(np.array([[0.9, 0.1]]), np.array([1.0, 1.0]))[0] == 0.0


def test_a_seldom_labelled_class_is_asked_for_before_an_often_labelled_one():
    rows = np.array([[0.8, 0.2, 0.0], [0.0, 0.2, 0.8]])
    often, seldom = variance_removed(rows, np.array([0.9, 0.5, 0.01]))
    assert seldom > 10 * often


def test_a_fairly_sure_prediction_is_preferred_to_an_even_one():
    """What the page says: whose label may surprise comes first; where all labels cost the same there is no variance."""
    sure, fairly, even = variance_removed(
        np.array([[0.999, 0.0005, 0.0005], [0.88, 0.06, 0.06], [1 / 3, 1 / 3, 1 / 3]]), np.full(3, 0.1)
    )
    assert fairly > 10 * sure
    assert even == pytest.approx(0.0, abs=1e-12)
