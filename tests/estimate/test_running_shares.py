"""Shares from what lies around examples: against the definitions written out, and on populations that are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cadr.estimate.label_shift import fit_scaling, with_prior
from cadr.estimate.label_swap import around
from cadr.estimate.running_shares import doubly_robust, not_refuted, running_shares


def problem(shares, counts, seed=0, rows=1500, tilt=(3.0, 0.0, 0.0), apart=2.0):
    """Predictions of a model that favours the first class, with the features it looks at."""
    random = np.random.default_rng(seed)
    centres = apart * np.eye(len(shares))
    labels = np.repeat(np.arange(len(shares)), counts)
    truth = random.choice(len(shares), rows, p=shares)
    draw = lambda of: centres[of] + 0.6 * random.standard_normal((len(of), len(shares)))  # noqa: E731
    predict = lambda x: torch.from_numpy(2.0 * x + np.array(tilt)).softmax(1)  # noqa: E731
    seen, others = draw(labels), draw(truth)
    return seen, labels, others, truth, predict(others)


def neighbours(seen, others, predicted):
    few, many = torch.from_numpy(seen), torch.from_numpy(others)
    return around(few, many, predicted, 5).numpy(), around(many, many, predicted, 5, itself=False).numpy()


@pytest.mark.parametrize("rows", [40, 1003])
def test_nobody_is_its_own_neighbour(rows):
    random = np.random.default_rng(1)
    x = random.standard_normal((rows, 3))
    predicted = torch.from_numpy(random.dirichlet(np.ones(4), rows))
    unit = (x - x.mean(0)) / x.std(0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    votes = around(torch.from_numpy(x), torch.from_numpy(x), predicted, 5, itself=False)
    near = max(5, rows // 50 // 4)
    for i in (0, 7, rows - 1):
        others = [j for j in np.argsort(-(unit @ unit[i])) if j != i][:near]
        np.testing.assert_allclose(votes[i], predicted.numpy()[others].mean(0))


@pytest.mark.parametrize("shares", [(0.1, 0.3, 0.6), (0.7, 0.2, 0.1), (1 / 3, 1 / 3, 1 / 3)])
def test_it_sees_through_a_model_that_favours_a_class(shares):
    seen, labels, others, truth, predicted = problem(shares, (40, 12, 4))
    labelled, unlabelled = neighbours(seen, others, predicted)
    true = np.bincount(truth) / len(truth)
    found = running_shares(labelled, labels, unlabelled, np.random.default_rng(0))
    assert np.abs(predicted.numpy().mean(0) - true).sum() > 0.2
    assert np.abs(found.share - true).sum() < 0.12
    assert np.abs(found.doubly_robust - true).sum() < 0.12
    assert (found.interval[:, 0] <= true).all()
    assert (true <= found.interval[:, 1]).all()
    assert found.share.sum() == pytest.approx(1.0)
    assert found.doubly_robust.sum() == pytest.approx(1.0)


def test_the_doubly_robust_estimate_is_that_of_its_definition():
    """Row by row, with a propensity that follows from the shares it starts at, each fold judged by the others."""
    seen, labels, others, _, predicted = problem((0.2, 0.3, 0.5), (9, 6, 1), rows=60)
    labelled, unlabelled = neighbours(seen, others, predicted)
    start, classes, random = np.array([0.25, 0.35, 0.4]), 3, np.random.default_rng(4)
    draws, fold = random.random(len(labels)), np.empty(len(labels), int)
    for place, row in enumerate(sorted(range(len(labels)), key=lambda i: (labels[i], draws[i]))):
        fold[row] = place % 5
    counts, expected = np.bincount(labels), np.zeros(classes)
    for k in range(5):
        others_of = [i for i in range(len(labels)) if fold[i] != k or counts[labels[i]] == 1]
        scaling = fit_scaling(labelled[others_of], labels[others_of])
        before = scaling.apply(labelled[others_of]).mean(0)
        for row in with_prior(scaling.apply(unlabelled), before, start):
            expected += row / (5 * len(unlabelled))
        for i in np.flatnonzero(fold == k):
            imputed = with_prior(scaling.apply(labelled[[i]]), before, start)[0]
            propensity = counts[labels[i]] / (len(unlabelled) * start[labels[i]])
            expected += (np.eye(classes)[labels[i]] - imputed) / propensity / len(unlabelled)
    found = doubly_robust(labelled, labels, unlabelled, start, np.random.default_rng(4))
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-9)


def test_what_is_not_refuted_stays():
    presumed, wide = np.full(4, 0.25), np.array([[0.1, 0.4]] * 4)
    np.testing.assert_allclose(not_refuted(presumed, wide), presumed)
    bounds = np.array([[0.0, 0.05], [0.1, 0.4], [0.1, 0.4], [0.4, 0.6]])
    found = not_refuted(presumed, bounds)
    np.testing.assert_allclose(found, [0.05, 0.275, 0.275, 0.4])  # the near bounds, and the rest in proportion
    unequal = not_refuted(np.array([0.1, 0.2, 0.3, 0.4]), bounds)
    assert unequal.sum() == pytest.approx(1.0)
    assert (unequal >= bounds[:, 0] - 1e-9).all()
    assert (unequal <= bounds[:, 1] + 1e-9).all()


def test_intervals_that_leave_no_choice():
    point = np.array([[0.2, 0.2], [0.3, 0.3], [0.5, 0.5]])
    np.testing.assert_allclose(not_refuted(np.full(3, 1 / 3), point), [0.2, 0.3, 0.5])
    absent = np.array([[0.0, 0.0], [0.3, 0.3], [0.7, 0.7]])
    found = not_refuted(np.full(3, 1 / 3), absent)
    assert (found > 0).all()
    assert found.sum() == pytest.approx(1.0)
