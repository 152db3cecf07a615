"""What CADRClassifier says of a model that is not to be relied on, and what it was told of the classes' shares."""

import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from cadr import CADRClassifier, CadrWarning, Pool, diagnose

FAST: dict[str, Any] = {"batch": 8, "ratio": 2, "random_state": 0}


def blobs(shares=(0.8, 0.2), labels_of=(30, 30), n=600):
    random = np.random.default_rng(0)
    truth = np.sort(random.choice(len(shares), n, p=shares))
    X = (random.normal(size=(n, 5)) + 4 * np.eye(len(shares), 5)[truth]).astype(np.float32)
    y = np.full(n, -1)
    for c, count in enumerate(labels_of):
        y[np.flatnonzero(truth == c)[:count]] = c
    return X, y


def said(model, X, y):
    """The warnings of `fit`, which are errors elsewhere in these tests."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(one.category is CadrWarning and one.filename == __file__ for one in caught)  # they name the call of fit
    return [str(one.message) for one in caught]


def test_a_class_that_is_hardly_ever_predicted():
    """The labels of docs/own-embeddings.md, which 200 steps are too few for."""
    X, truth = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    y = np.full(len(X), -1)
    for digit, number in enumerate([40, 30, 20, 15, 10, 8, 6, 5, 4, 4]):
        y[[i for i in order if truth[i] == digit][:number]] = digit
    model = CADRClassifier("cadr", steps=200, random_state=0)
    words = said(model, X, y)
    assert any("far fewer unlabelled examples than aimed at are predicted to be of class 8" in text for text in words)
    assert [record["message"] for record in model.history_ if "message" in record] == words
    assert model.propensity_[8] > 2 * (y == 8).sum() / (truth == 8).sum()  # what the warning is about


def test_shares_that_the_diagnosis_contradicts():
    X, y = blobs()
    model = CADRClassifier(steps=2, lr=1e-6, **FAST)
    (words,) = (text for text in said(model, X, y) if "contradict" in text)
    unlabelled = model.predict_proba(X[y == -1]).mean(0)
    assert words.startswith("Predicted shares of the unlabelled rows contradict cadr diagnose: ")
    assert f"'1' {100 * unlabelled[1]:.1f} % (estimated " in words
    np.testing.assert_allclose(model.class_prior_ * len(X), len(X[y == -1]) * unlabelled + [30, 30])


def test_labels_that_more_than_the_class_decides_on():
    X, y = blobs((0.5, 0.5), (300, 300))
    y[X[:, 4] < 0.5] = -1  # a feature that has nothing to do with the class
    words = said(CADRClassifier(steps=100, **FAST), X, y)
    assert any(t.startswith("Missingness does not look like a matter of class alone") for t in words)
    assert any(text.endswith("See diagnosis_.") for text in words)


def test_classes_that_are_hardly_told_apart():
    X, y = blobs((0.5, 0.5))
    noise = np.random.default_rng(1).normal(size=X.shape)
    words = said(CADRClassifier(steps=100, **FAST), noise, y)
    assert any("nothing vouches for target_prior_, class_prior_ and propensity_" in text for text in words)


def test_a_good_model_says_nothing():
    X, y = blobs()
    assert said(CADRClassifier(steps=200, **FAST), X, y) == []


def test_the_target_and_what_it_was_chosen_by():
    joblib = pytest.importorskip("joblib")
    X, y = blobs()
    model: Any = CADRClassifier(steps=200, **FAST).fit(X, y)
    diagnosis = diagnose(Pool(X, y, ("0", "1"), "X"))
    assert model.diagnosis_ == diagnosis
    np.testing.assert_allclose(model.target_prior_, np.array([c.prior for c in diagnosis.classes], float), atol=2e-4)
    again = pickle.loads(pickle.dumps(model))
    file = io.BytesIO()
    joblib.dump(model, file)
    for copied in (again, joblib.load(io.BytesIO(file.getvalue()))):
        assert copied.diagnosis_ == diagnosis
        np.testing.assert_array_equal(copied.target_prior_, model.target_prior_)
    assert not {"diagnosis_", "target_prior_"} & set(vars(clone(model)))


def test_equal_shares_are_spelled_out():
    X, y = blobs((0.5, 0.5))
    model: Any = CADRClassifier(steps=200, **FAST).fit(X, y)
    assert model.target_prior_.tolist() == [0.5, 0.5]
    assert model.diagnosis_.missing_at_random


@pytest.mark.parametrize(
    ("algorithm", "settings", "expected"), [("cadr", {"target_prior": (4, 1)}, [0.8, 0.2]), ("fixmatch", {}, None)]
)
def test_no_diagnosis_where_nobody_asks_for_one(algorithm, settings, expected):
    X, y = blobs()
    model = CADRClassifier(algorithm, steps=200, settings=settings, **FAST).fit(X, y)
    assert model.diagnosis_ is None
    assert (None if expected is None else pytest.approx(expected)) == model.target_prior_


def test_nothing_to_diagnose():
    X, y = blobs((0.5, 0.5), (600, 600))
    model: Any = CADRClassifier(steps=100, **FAST).fit(X, y)
    assert (y >= 0).all()
    assert model.diagnosis_ is None
    assert model.target_prior_.tolist() == [0.5, 0.5]
