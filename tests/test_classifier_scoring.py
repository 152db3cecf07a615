"""scikit-learn's scorers and folds where labels are missing, and what docs/own-embeddings.md says of them."""

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, check_cv, cross_val_score
from sklearn.multiclass import OneVsRestClassifier

from cadr import CADRClassifier, on_labelled
from cadr.errors import DataError


def rows(n=120):
    random = np.random.default_rng(0)
    truth = np.arange(n) % 2
    X = random.normal(size=(n, 3)) + 2.5 * np.eye(2, 3)[truth]
    return X, np.where(random.random(n) < 0.5, truth, -1)


@pytest.fixture
def fitted():
    X, y = rows()
    return LogisticRegression().fit(X[y >= 0], y[y >= 0]), X, y


@pytest.mark.parametrize(
    ("name", "metric", "response"),
    [
        ("accuracy", accuracy_score, lambda model, X: model.predict(X)),
        ("balanced_accuracy", balanced_accuracy_score, lambda model, X: model.predict(X)),
        ("roc_auc", roc_auc_score, lambda model, X: model.predict_proba(X)[:, 1]),
        ("neg_log_loss", lambda y, p: -log_loss(y, p), lambda model, X: model.predict_proba(X)),
    ],
)
def test_a_scorer_sees_rows_with_a_label_alone(fitted, name, metric, response):
    model, X, y = fitted
    expected = metric(y[y >= 0], response(model, X[y >= 0]))
    assert on_labelled(name)(model, X, y) == pytest.approx(expected)
    assert on_labelled(get_scorer(name))(model, X, y) == pytest.approx(expected)


def test_tables_and_labels_of_pandas(fitted):
    pd = pytest.importorskip("pandas")
    model, X, y = fitted
    labels = pd.Series(y, dtype="Int64").replace(-1, pd.NA)
    named = LogisticRegression().fit(pd.DataFrame(X[y >= 0], columns=list("abc")), y[y >= 0])
    table = pd.DataFrame(X, columns=list("abc"))
    assert on_labelled("roc_auc")(named, table, labels) == pytest.approx(on_labelled("roc_auc")(model, X, y))


def test_text(fitted):
    _, X, y = fitted
    names = np.where(y < 0, "", np.array(["ash", "oak"])[y])
    model = LogisticRegression().fit(X[y >= 0], names[y >= 0])
    assert on_labelled("accuracy")(model, X, names) == accuracy_score(names[y >= 0], model.predict(X[y >= 0]))


def test_no_label_at_all(fitted):
    model, X, y = fitted
    with pytest.raises(DataError, match="every label in y is missing"):
        on_labelled("accuracy")(model, X[y < 0], y[y < 0])


def test_cross_validation_and_a_grid():
    X, y = rows()
    model = CADRClassifier(steps=60, batch=8, ratio=2, random_state=0)
    scorer = pickle.loads(pickle.dumps(on_labelled("accuracy")))  # as for other processes
    scores = cross_val_score(model, X, y, cv=2, scoring=scorer)
    np.testing.assert_allclose(scores, cross_val_score(model, X, y, cv=2))  # as the classifier scores by itself
    assert scores.min() > 0.7
    assert cross_val_score(model, X, y, cv=2, scoring="accuracy").max() < 0.6  # half of the rows have no label
    grid = GridSearchCV(model, {"lr": [0.05, 0.1]}, cv=2, scoring=on_labelled("roc_auc")).fit(X, y)
    assert 0.7 < grid.best_score_ <= 1.0


META = [
    BaggingClassifier(CADRClassifier(), n_estimators=1),
    CalibratedClassifierCV(CADRClassifier(), cv=2),
    VotingClassifier([("one", CADRClassifier())]),
    StackingClassifier([("one", CADRClassifier())], cv=2),
    OneVsRestClassifier(CADRClassifier()),
]


@pytest.mark.parametrize("meta", META, ids=lambda meta: type(meta).__name__)
@pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")
def test_estimators_around_it_take_a_missing_label_for_a_class(meta):
    """If this fails, scikit-learn has learned better, and the page may say so."""
    X, y = rows()
    inner = "one" if hasattr(meta, "estimators") else "estimator"
    meta.set_params(**{f"{inner}__steps": 10, f"{inner}__batch": 8, f"{inner}__ratio": 2})
    assert -1 in meta.fit(X, y).classes_


def test_folds_are_stratified_where_a_missing_label_is_written_out():
    _, y = rows()
    text = np.where(y < 0, "", np.array(["ash", "oak"])[y])
    for written in (y, text):
        assert isinstance(check_cv(2, written, classifier=True), StratifiedKFold)
    gaps = np.array([None if label < 0 else name for label, name in zip(y, text, strict=True)], dtype=object)
    first = np.concatenate([gaps[y < 0], gaps[y >= 0]])  # a gap comes first
    assert isinstance(check_cv(2, first, classifier=True), KFold)
    with pytest.raises(TypeError, match="NoneType"):
        check_cv(2, first[::-1], classifier=True)
    with pytest.raises(ValueError, match="NaN"), np.errstate(invalid="ignore"):
        check_cv(2, np.where(y < 0, np.nan, y), classifier=True)
