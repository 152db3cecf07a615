"""Each learner against scikit-learn's, and its module against itself."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from cadr.ensemble.discriminant import Discriminant
from cadr.ensemble.estimator import Estimator
from cadr.ensemble.forest import FLOOR, Forest
from cadr.ensemble.learners import class_weights, one_hot
from cadr.ensemble.logistic import Logistic
from cadr.errors import ConfigError
from tests.ensemble.problems import biased

PROBLEM = biased()
KNOWN = ~PROBLEM.missing
X, Y = PROBLEM.x[KNOWN], PROBLEM.labels[KNOWN]
WEIGHTS = class_weights(Y, np.full(10, 0.1))


def _fit(learner, weights=WEIGHTS):
    return learner.fit(X, one_hot(Y, 10), weights)


def _probabilities(scores):
    exponentials = np.exp(scores - scores.max(1, keepdims=True))
    return exponentials / exponentials.sum(1, keepdims=True)


def test_class_weights_give_classes_their_shares():
    shares = np.arange(1, 11) / 55
    weights = class_weights(Y, shares)
    np.testing.assert_allclose(np.bincount(Y, weights) / len(Y), shares)
    assert weights.mean() == pytest.approx(1)


def test_logistic_regression_is_scikit_learns():
    theirs = LogisticRegression(C=1 / 3, max_iter=5000, tol=1e-8).fit(X, Y, WEIGHTS).predict_proba(PROBLEM.x)
    np.testing.assert_allclose(_probabilities(_fit(Logistic(3.0)).scores(PROBLEM.x)), theirs, atol=5e-3)


def test_soft_labels_are_rows_that_are_there_once_for_every_class():
    soft = np.random.default_rng(0).dirichlet(np.ones(3), len(X))
    ours = Logistic(1.0).fit(X, soft, np.ones(len(X)))
    copies = np.repeat(X, 3, axis=0), np.tile(np.eye(3), (len(X), 1)), soft.ravel()
    theirs = Logistic(1.0).fit(*copies)
    np.testing.assert_allclose(_probabilities(ours.scores(X)), _probabilities(theirs.scores(X)), atol=5e-3)


def test_a_fit_goes_on_from_another():
    cold, warm = _fit(Logistic()), Logistic().fit(X, one_hot(Y, 10), WEIGHTS, _fit(Logistic()))
    np.testing.assert_allclose(_probabilities(warm.scores(X)), _probabilities(cold.scores(X)), atol=5e-3)


def test_discriminant_analysis_is_scikit_learns():
    shrunk = Discriminant(dimensions=64)
    ours = _fit(shrunk, np.ones(len(Y))).scores(PROBLEM.x)  # the first fit is shrunk by a half
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5, priors=np.bincount(Y) / len(Y))
    # scikit-learn shrinks each class's covariance in standardised units of the class, so that its units are ours
    covariance = sum(
        (X[c == Y] - X[c == Y].mean(0)).T.astype(float) @ (X[c == Y] - X[c == Y].mean(0)).astype(float)
        for c in range(10)
    ) / len(Y)
    covariance = 0.5 * covariance + 0.5 * np.trace(covariance) / 64 * np.eye(64)
    means = np.stack([X[c == Y].mean(0) for c in range(10)]).astype(float)
    distance = np.stack([((PROBLEM.x - m) @ np.linalg.inv(covariance) * (PROBLEM.x - m)).sum(1) for m in means], 1)
    np.testing.assert_allclose(_probabilities(ours), _probabilities(-0.5 * distance), atol=1e-4)
    agree = theirs.fit(X, Y).predict(PROBLEM.x) == ours.argmax(1)
    assert agree.mean() > 0.85


def test_a_forest_is_scikit_learns_to_the_last_leaf():
    forest = Forest(trees=20, leaf=2, seed=3)
    theirs = RandomForestClassifier(20, min_samples_leaf=2, random_state=3).fit(X, Y, WEIGHTS)
    found = np.exp(_fit(forest).scores(PROBLEM.x)) * (1 + 10 * FLOOR) - FLOOR
    np.testing.assert_allclose(found, theirs.predict_proba(PROBLEM.x), atol=1e-5)


def test_a_row_on_a_threshold_goes_where_scikit_learn_sends_it():
    x = np.array([[0.1], [0.1 + 2**-24], [0.1 + 2**-23], [0.3]], np.float32)
    y = np.array([0, 0, 1, 1])
    theirs = RandomForestClassifier(5, random_state=0, bootstrap=False).fit(x, y)
    ours = Forest(trees=5, leaf=1).fit(x, one_hot(y, 2), np.ones(4))
    assert (ours.scores(x).argmax(1) == theirs.predict(x)).all()


@pytest.mark.parametrize("learner", [Logistic(), Discriminant(), Forest(trees=10)], ids=lambda one: type(one).__name__)
def test_modules_score_as_their_learners(learner):
    fitted = _fit(learner)
    with torch.inference_mode():
        found = fitted.module()(torch.from_numpy(PROBLEM.x)).double().numpy()
    np.testing.assert_allclose(found, fitted.scores(PROBLEM.x), rtol=1e-3, atol=2e-3)


def test_an_estimator_must_give_probabilities():
    from sklearn.svm import LinearSVC

    with pytest.raises(ConfigError, match=r"predict_proba.*got LinearSVC"):
        Estimator(LinearSVC())


def test_an_estimator_knows_classes_that_it_was_given_no_row_of():
    fitted = Estimator(RandomForestClassifier(5, random_state=0)).fit(X[Y < 9], one_hot(Y[Y < 9], 10), WEIGHTS[Y < 9])
    scores = fitted.scores(PROBLEM.x)
    assert scores.shape == (len(PROBLEM.x), 10)
    np.testing.assert_allclose(scores[:, 9], np.log(1 / 300))
