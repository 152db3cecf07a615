"""The ensemble as a whole: better than what it is made of, one module, and sound at the edges."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from cadr.ensemble.estimator import Estimator
from cadr.ensemble.fit import fit_ensemble
from cadr.ensemble.module import EnsembleModule
from tests.ensemble.problems import Problem, biased

PROBLEM = biased(rows=700, counts=(25, 20, 16, 12, 10, 8, 6, 5, 4, 3))


@pytest.fixture(scope="module")
def fitted():
    return fit_ensemble(PROBLEM.x, PROBLEM.labels, PROBLEM.scale, 10, seed=0)


def _module(fitted, x):
    with torch.inference_mode():
        return fitted.module()(torch.from_numpy(x)).softmax(1).numpy()


def test_ahead_of_balanced_logistic_regression(fitted):
    known = ~PROBLEM.missing
    theirs = LogisticRegression(class_weight="balanced", max_iter=500).fit(PROBLEM.x[known], PROBLEM.labels[known])
    baseline = PROBLEM.accuracy(theirs.predict_proba(PROBLEM.x))
    assert PROBLEM.accuracy(fitted.probabilities()) > baseline + 0.04


def test_shares_are_those_of_the_rows(fitted):
    truth = np.bincount(PROBLEM.truth[PROBLEM.missing]) / PROBLEM.missing.sum()
    assert 0.5 * np.abs(fitted.shares - truth).sum() < 0.06  # the labels' own are 0.35 away
    np.testing.assert_allclose(fitted.probabilities()[PROBLEM.missing].mean(0), fitted.shares, atol=2e-3)


def test_held_out_probabilities_know_less_than_fitted_ones(fitted):
    known = ~PROBLEM.missing
    assert fitted.held_out.shape == (known.sum(), 10)
    right = fitted.held_out.argmax(1) == PROBLEM.labels[known]
    assert 0.75 < right.mean() < 1
    assert right.mean() > (fitted.logistic_held_out.argmax(1) == PROBLEM.labels[known]).mean() - 0.02


def test_the_module_predicts_what_the_fit_did(fitted):
    np.testing.assert_allclose(_module(fitted, PROBLEM.x), fitted.probabilities(), atol=2e-3)


def test_the_module_is_its_tensors(fitted):
    module = fitted.module()
    again = EnsembleModule.of_tensors(module.state_dict())
    x = torch.from_numpy(PROBLEM.x[:50] + 0.2)
    with torch.inference_mode():
        torch.testing.assert_close(again(x), module(x), rtol=0, atol=0)


def test_a_seed_is_a_fit(fitted):
    again = fit_ensemble(PROBLEM.x, PROBLEM.labels, PROBLEM.scale, 10, seed=0)
    np.testing.assert_array_equal(again.probabilities(), fitted.probabilities())


def test_weights_add_up(fitted):
    weights = fitted.weights()
    assert sum(weights.values()) == pytest.approx(1)
    assert {name.partition("@")[0] for name in weights} == {
        "logistic", "imputed_logistic", "discriminant", "propagation", "forest",
    }  # fmt: skip


def test_known_shares_are_kept():
    shares = np.array([0.19, 0.01, *[0.1] * 8])
    found = fit_ensemble(PROBLEM.x, PROBLEM.labels, PROBLEM.scale, 10, 0, ("logistic",), shares).probabilities()
    left = shares * len(PROBLEM.x) - np.bincount(PROBLEM.labels[~PROBLEM.missing])
    left = np.maximum(left, 0.5) / np.maximum(left, 0.5).sum()
    np.testing.assert_allclose(found[PROBLEM.missing].mean(0), left, atol=2e-3)


def test_an_estimator_of_ones_own():
    own = Estimator(LogisticRegression(max_iter=200))
    found = fit_ensemble(PROBLEM.x, PROBLEM.labels, PROBLEM.scale, 10, 0, estimator=own)
    np.testing.assert_allclose(found.predict(PROBLEM.x), found.probabilities(), atol=1e-6)
    assert PROBLEM.accuracy(found.predict(PROBLEM.x)) > 0.85


def test_progress_ends_at_the_whole():
    heard = []
    fit_ensemble(PROBLEM.x, PROBLEM.labels, PROBLEM.scale, 10, 0, progress=lambda *what: heard.append(what))
    assert [share for _, share in heard] == sorted(share for _, share in heard)
    assert heard[-1][1] == 1


def _tiny(n=30, d=3, labels=(0, 0, 1, 1)):
    random = np.random.default_rng(0)
    truth = np.arange(n) % 2
    x = random.normal(size=(n, d)).astype(np.float32) + 2 * truth[:, None].astype(np.float32)
    given = np.full(n, -1)
    for c in set(labels):
        given[np.flatnonzero(truth == c)[: labels.count(c)]] = c
    return Problem(x, given, truth, np.ones(d), 2)


@pytest.mark.parametrize(
    "problem",
    [
        _tiny(labels=(0, 1)),  # one label each
        _tiny(labels=(0, 0, 0, 0, 1)),
        _tiny(n=4, labels=(0, 0, 1, 1)),  # no row without a label
        _tiny(n=5, labels=(0, 0, 1, 1)),  # one
        _tiny(d=1),
        _tiny()._replace(x=np.hstack([_tiny().x, np.zeros((30, 2), np.float32)]), scale=np.ones(5)),  # constant columns
        _tiny()._replace(x=np.repeat(_tiny().x[:6], 5, axis=0)),  # the same rows again and again
    ],
    ids=["one each", "five", "all labelled", "one missing", "one column", "constant", "copies"],
)
def test_little_data(problem):
    found = fit_ensemble(problem.x, problem.labels, problem.scale, 2, seed=0)
    for probabilities in (found.probabilities(), _module(found, problem.x), found.held_out):
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-4)
