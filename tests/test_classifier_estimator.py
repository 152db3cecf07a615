"""CADRClassifier around any classifier of scikit-learn's, and what features are learned by where nobody says."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from cadr import CADRClassifier
from cadr.ensemble.estimator import Estimator, repeated
from cadr.errors import ConfigError
from tests.ensemble.problems import biased

PROBLEM = biased("wine", counts=(16, 8, 5))
KNOWN = ~PROBLEM.missing


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(3),  # whose fit takes no weights
        GaussianNB(),
        RandomForestClassifier(30, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_around_an_estimator(estimator):
    """About as good as it is by itself, and better where it took the labels for the rows."""
    alone = clone(estimator).fit(PROBLEM.x[KNOWN], PROBLEM.labels[KNOWN]).predict_proba(PROBLEM.x)
    model = CADRClassifier(estimator=estimator, random_state=0).fit(PROBLEM.x, PROBLEM.labels)
    assert PROBLEM.accuracy(model.predict_proba(PROBLEM.x)) > PROBLEM.accuracy(alone) - 0.05
    assert PROBLEM.accuracy(model.predict_proba(PROBLEM.x)) > 0.85
    np.testing.assert_allclose(model.class_prior_, np.bincount(PROBLEM.truth) / len(PROBLEM.truth), atol=0.08)
    assert model.history_[-1]["on"] == "cross_fitted"


def test_it_is_an_estimator_among_others(tmp_path):
    model = CADRClassifier(estimator=LogisticRegression(), random_state=0)
    search = GridSearchCV(model, {"estimator__C": [1e-6, 1.0]}, cv=2).fit(PROBLEM.x, PROBLEM.labels)
    assert search.best_params_ == {"estimator__C": 1.0}
    best = search.best_estimator_
    loaded = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(loaded.predict(PROBLEM.x), best.predict(PROBLEM.x))
    with pytest.raises(ConfigError, match="cannot be saved"):
        best.save(tmp_path / "run")
    with pytest.raises(ConfigError, match="cannot be saved"):
        best.export(tmp_path / "run")


def test_shares_that_are_known_are_kept():
    shares = np.array([0.2, 0.3, 0.5])
    model: Any = CADRClassifier(estimator=GaussianNB(), settings={"target_prior": tuple(shares)}, random_state=0)
    np.testing.assert_allclose(model.fit(PROBLEM.x, PROBLEM.labels).class_prior_, shares, atol=0.01)
    np.testing.assert_allclose(model.target_prior_, shares)


def test_mistakes_are_refused():
    with pytest.raises(ConfigError, match="not both"):
        CADRClassifier("cadr", estimator=GaussianNB()).fit(PROBLEM.x, PROBLEM.labels)
    with pytest.raises(ConfigError, match="got LinearSVC"):
        CADRClassifier(estimator=LinearSVC()).fit(PROBLEM.x, PROBLEM.labels)
    with pytest.raises(ConfigError, match="give an instance"):
        CADRClassifier(estimator=GaussianNB).fit(PROBLEM.x, PROBLEM.labels)
    with pytest.raises(ConfigError, match="no steps"):
        CADRClassifier(estimator=GaussianNB(), steps=10).fit(PROBLEM.x, PROBLEM.labels)
    images = np.zeros((20, 8, 8, 3), np.uint8)
    with pytest.raises(ConfigError, match="pictures"):
        CADRClassifier(estimator=GaussianNB()).fit(images, np.arange(20) % 3 - 1)


def test_rows_are_repeated_as_often_as_they_weigh():
    weights = np.array([0.5, 3.0, 0.0, 1.5])
    counts = np.bincount(repeated(weights, 100), minlength=4)
    np.testing.assert_allclose(counts, 20 * weights, atol=1)


def test_weights_and_repeated_rows_come_to_the_same():
    """Of a learner whose fit depends on nothing but the weighted rows."""

    class Unweighted(GaussianNB):  # type: ignore[misc]
        def fit(self, X, y):
            return super().fit(X, y)

    random = np.random.default_rng(0)
    x, labels = random.normal(size=(60, 2)).astype(np.float32), np.arange(60) % 3
    x += labels[:, None]
    targets, weights = np.eye(3)[labels], random.integers(1, 4, 60).astype(float)
    weighted = Estimator(GaussianNB()).fit(x, targets, weights).scores(x)
    drawn = Estimator(Unweighted()).fit(x, targets, weights).scores(x)
    np.testing.assert_allclose(weighted, drawn, atol=0.15)


def test_features_are_learned_by_the_ensemble_unless_a_network_is_asked_for(tmp_path):
    model = CADRClassifier(random_state=0).fit(PROBLEM.x, PROBLEM.labels)
    assert "ensemble" in (model.save(tmp_path / "run") / "config.toml").read_text()
    assert PROBLEM.accuracy(model.predict_proba(PROBLEM.x)) > 0.9
    network = CADRClassifier(steps=100, batch=4, random_state=0).fit(PROBLEM.x, PROBLEM.labels)
    assert 'algorithm = "cap_cai"' in (network.save(tmp_path / "network") / "config.toml").read_text()
