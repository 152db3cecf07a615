"""CADRClassifier among scikit-learn's own: its checks, its tools, and labels that are missing."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

from cadr.algorithms import ALGORITHMS
from cadr.classifier import CADRClassifier
from cadr.errors import DataError
from cadr.scoring import known_labels

FAST: dict[str, Any] = {"batch": 8, "ratio": 2}
BRIEFLY = pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")  # trained too short to be any good


def blobs(n=200, labelled=0.4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 5)) + 4 * np.eye(3, 5)[y]
    return X, y, np.where(rng.random(n) < labelled * np.array([1.0, 0.4, 0.2])[y], y, -1)


@BRIEFLY
def test_scikit_learn_accepts_it():
    expected = {"check_classifiers_classes": "−1 means a missing label here, and the check uses it as a class"}
    results = check_estimator(
        CADRClassifier(steps=60, **FAST), expected_failed_checks=expected, on_fail=None, on_skip=None
    )
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert failed == []
    assert [r["check_name"] for r in results if r["status"] == "xfail"] == ["check_classifiers_classes"]
    assert sum(r["status"] == "passed" for r in results) > 40


def test_columns_that_32_bits_would_merge_are_counted_from_their_middle():
    X, _, y = blobs()
    X = np.round(8 * X).astype(np.float64) / 8  # so that all of them can be moved without loss in 64 bits
    model = CADRClassifier(steps=20, random_state=0, **FAST)
    near = model.fit(X, y).predict_proba(X)
    far = X + np.array([2.0**40, 0, 0, 0, 0])
    loaded = pickle.loads(pickle.dumps(model.fit(far, y)))
    assert np.abs(loaded.predict_proba(far) - near).max() < 1e-3
    assert np.abs(loaded.predict_proba(far[:1]) - near[:1]).max() < 1e-3
    assert np.array_equal(loaded.fit(X, y).predict_proba(X), near)


def test_numbers_beyond_32_bits_are_refused(fitted):
    model, X, _, y = fitted
    with pytest.raises(ValueError, match="too large for float32"):
        CADRClassifier(steps=5, **FAST).fit(1e300 * X, y)
    with pytest.raises(ValueError, match="too large for float32"):
        model.predict(1e300 * X)


@pytest.fixture(scope="module")
def fitted():
    X, truth, y = blobs()
    return CADRClassifier(steps=150, random_state=0, **FAST).fit(X, y), X, truth, y


def test_what_is_learned(fitted):
    model, X, truth, y = fitted
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 5
    assert model.score(X, truth) > 0.95
    assert model.predict(X).dtype == truth.dtype
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1.0, atol=1e-6)
    assert model.class_prior_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(model.class_prior_, np.bincount(truth) / len(truth), atol=0.05)
    actual = [(y[truth == c] >= 0).mean() for c in range(3)]
    np.testing.assert_allclose(model.propensity_, actual, atol=0.08)
    assert [record["step"] for record in model.history_][-1] == 150
    assert {"loss", "prior", "terms"} <= set(model.history_[0])


def test_score_looks_at_known_labels_only(fitted):
    model, X, _, y = fitted
    known = y >= 0
    labels = np.where(known & (np.arange(len(y)) % 3 == 0), (y + 1) % 3, y)  # some of them wrong
    right, weights = model.predict(X) == labels, 1.0 + np.arange(len(y))
    assert model.score(X, labels) == pytest.approx(right[known].mean())
    assert model.score(X, labels, weights) == pytest.approx(np.average(right[known], weights=weights[known]))


def test_the_same_seed_gives_the_same_model(fitted):
    model, X, _, y = fitted
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert np.abs(other.predict_proba(X) - model.predict_proba(X)).max() > 1e-6


def test_pickling(fitted):
    model, X, _, _ = fitted
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("missing", [None, float("nan"), "", "-1"])
def test_string_labels(missing):
    X, truth, y = blobs()
    names = np.array(["ash", "birch", "oak"])
    strings = np.array([missing if label < 0 else names[label] for label in y], dtype=object)
    model = CADRClassifier(steps=100, random_state=0, **FAST).fit(X, strings)
    assert model.classes_.tolist() == ["ash", "birch", "oak"]
    assert (model.predict(X) == names[truth]).mean() > 0.9
    assert model.score(X, strings) > 0.9


def test_pandas():
    pd = pytest.importorskip("pandas")
    X, truth, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcde"))
    labels = pd.Series(y).astype("Int64").replace(-1, pd.NA)
    model = CADRClassifier(steps=60, random_state=0, **FAST).fit(frame, labels)
    assert model.feature_names_in_.tolist() == list("abcde")
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.classes_.dtype == model.predict(frame).dtype == np.int64
    assert model.score(frame, pd.Series(truth)) > 0.8


@pytest.mark.parametrize(
    ("values", "dtype", "kind"),
    [
        ([1, 2, None], "Int64", "i"),
        ([1, 2, 2], "Int64", "i"),
        ([2**53, 2**53 + 1, None], "Int64", "i"),  # one and the same as floating point
        ([1, 2, None], "UInt8", "i"),
        ([1.5, 2.5, None], "Float64", "f"),
        ([True, False, None], "boolean", "b"),
        (["ash", "oak", None], "string", "U"),
        ([1, 2, None], "category", "i"),
        ([True, False, None], "category", "b"),
        (["ash", "oak", None], "category", "U"),
    ],
)
@pytest.mark.parametrize("shape", ["column", "array", "table"])
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_labels_keep_the_kind_that_they_have_in_pandas(values, dtype, kind, shape):
    pd = pytest.importorskip("pandas")
    series = pd.Series(pd.Categorical(values) if dtype == "category" else pd.array(values, dtype=dtype))
    y = {"column": series, "array": series.array, "table": series.to_frame("y")}[shape]
    known, labels = known_labels(y, 3)
    assert known.tolist() == [value is not None for value in values]
    assert labels.dtype == {"i": np.int64, "f": np.float64, "b": np.bool_}.get(kind, labels.dtype)
    assert (labels.dtype.kind, labels.tolist()) == (kind, [value for value in values if value is not None])


def test_every_label_known_and_labels_as_floats_with_gaps():
    X, truth, y = blobs(90)
    model = CADRClassifier(steps=60, random_state=0, **FAST).fit(X, truth)
    np.testing.assert_allclose(model.propensity_, 1.0)
    floats = np.where(y < 0, np.nan, y.astype(float))
    np.testing.assert_array_equal(
        CADRClassifier(steps=40, random_state=0, **FAST).fit(X, floats).predict(X),
        CADRClassifier(steps=40, random_state=0, **FAST).fit(X, y).predict(X),
    )


def test_pipeline_and_grid_search():
    X, truth, y = blobs()
    pipeline = make_pipeline(MinMaxScaler(), CADRClassifier(steps=50, random_state=0, **FAST))
    grid = GridSearchCV(pipeline, {"cadrclassifier__algorithm": ["fixmatch", "cadr"]}, cv=2).fit(X, y)
    assert (grid.predict(X) == truth).mean() > 0.9
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()


@BRIEFLY
def test_grids_of_numpys_numbers():
    X, _, y = blobs()
    grid = {"lr": np.logspace(-2, -1, 2), "steps": np.array([20]), "settings": [{"threshold": np.float64(0.9)}]}
    best = GridSearchCV(CADRClassifier(random_state=0, **FAST), grid, cv=2).fit(X, y).best_params_
    assert best["lr"] in (0.01, 0.1)
    numpys: dict[str, Any] = {"steps": np.int64(20), "settings": {"target_prior": np.array([0.2, 0.3, 0.5])}}
    assert CADRClassifier(random_state=0, **numpys, **FAST).fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize("missing", ["", "-1"])
def test_text_with_gaps_is_cross_validated(missing):
    X, _, y = blobs()
    strings = np.where(y < 0, missing, np.array(["ash", "birch", "oak"])[y])
    scores = cross_val_score(CADRClassifier(steps=50, random_state=0, **FAST), X, strings, cv=2)
    assert scores.min() > 0.9  # not of a class that means nothing is known


@BRIEFLY
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_any_algorithm_by_name(algorithm):
    X, _, y = blobs(120)
    settings = {"lambda_r": 0.0} if algorithm == "remixmatch" else {}  # features cannot be turned
    model = CADRClassifier(algorithm, steps=40, settings=settings, random_state=0, **FAST).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1.0, atol=1e-6)


@BRIEFLY
def test_images_of_any_number_of_channels():
    data = load_digits()
    images = np.rint(data.images[:300] * 255 / 16).astype(np.uint8)[..., None]
    y = np.where(np.arange(300) < 150, data.target[:300], -1)
    settings = {"flip": False}
    model = CADRClassifier(steps=150, settings=settings, random_state=0, **FAST).fit(images, y)
    assert model.score(images[150:], data.target[150:300]) > 0.6
    np.testing.assert_array_equal(model.predict(images.repeat(3, axis=-1)), model.predict(images))
    with pytest.raises(ValueError, match="8×8 pixels"):
        model.predict(images[:, :6])
    assert model.n_features_in_ == 64


@BRIEFLY
def test_calibration_on_held_out_labels():
    X, _, y = blobs(labelled=0.9)
    model = CADRClassifier(steps=60, validation=0.3, random_state=0, **FAST).fit(X, y)
    assert model.calibration_.examples > 10
    assert model.calibration_.error_after is not None
    assert any(record.get("on") == "validation" for record in model.history_)
    assert CADRClassifier(steps=20, random_state=0, **FAST).fit(X, y).calibration_.examples == 0


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(200, -1), "every label in y is missing"),
        (np.full(200, "-1.0"), "every label in y is missing"),
        (np.where(np.arange(200) < 9, 4, -1), r"at least two classes .* one class: 4 \(−1 stands for a missing"),
        (np.array(["a"] * 100 + [3] * 100, dtype=object), "all be strings or all be numbers"),
        (np.linspace(0, 1, 200), "continuous"),
        (np.full(200, np.inf), "infinity"),
        ([1.0, None, np.inf, 2.0] * 50, "infinity"),
        (np.zeros(7), "inconsistent"),
    ],
)
def test_mistakes_are_named(y, words):
    with pytest.raises(ValueError, match=words):
        CADRClassifier(steps=5).fit(blobs()[0], y)


def test_words_are_refused_with_what_to_do():
    X, _, y = blobs()
    words = X.astype(object)
    words[3, 0] = "Dream"
    with pytest.raises(ValueError, match=r"X must be numbers, as OneHotEncoder makes of words: could not .* 'Dream'"):
        CADRClassifier(steps=5).fit(words, y)


def test_unknown_settings_are_named():
    X, _, y = blobs()
    with pytest.raises(ValueError, match="cardr"):
        CADRClassifier("cardr").fit(X, y)
    with pytest.raises(ValueError, match="did you mean beta"):
        CADRClassifier(settings={"betta": 1.0}).fit(X, y)
    with pytest.raises(DataError, match="uint8 images"):
        CADRClassifier().fit(np.zeros((200, 4, 4, 3)), y)
