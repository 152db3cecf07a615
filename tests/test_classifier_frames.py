"""Tables of pandas in the estimator, and what a fitted one can write: a run, an export, a report."""

from __future__ import annotations

import csv
import json
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from cadr.classifier import CADRClassifier
from cadr.cli.main import main
from cadr.data import from_arrays, open_data
from cadr.errors import ConfigError, DataError

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")  # trained too short to be any good
FAST: dict[str, Any] = {"steps": 60, "batch": 8, "ratio": 2, "random_state": 0}


def penguins(n=120):
    """Words, gaps and dates, and labels of three species that are missing for the most part."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, n)
    frame = pandas.DataFrame(
        {
            "mass": np.where(random.random(n) < 0.1, np.nan, 4 + truth + 0.3 * random.normal(size=n)),
            "island": pandas.Series(np.array(["Biscoe", "Dream", None], dtype=object)[truth]),
            "sex": pandas.Categorical(np.array(["f", "m"])[random.integers(0, 2, n)]),
            "ringed": pandas.array(random.integers(0, 2, n) == 1, dtype="boolean"),
            "count": pandas.array(np.where(np.arange(n) % 7 == 0, None, 5 * truth), dtype="Int64"),
            "seen": pandas.to_datetime("2024-01-01") + pandas.to_timedelta(random.integers(0, 300, n), unit="D"),
        }
    )
    names = np.array(["Adelie", "Chinstrap", "Gentoo"], dtype=object)[truth]
    y = pandas.Series(np.where(random.random(n) < np.array([0.5, 0.3, 0.2])[truth], names, None))
    return frame, y, names


@pytest.fixture(scope="module")
def fitted():
    frame, y, truth = penguins()
    return CADRClassifier(**FAST).fit(frame, y), frame, y, truth


def test_words_dates_and_gaps_are_learned_from(fitted):
    model, frame, _, truth = fitted
    assert (model.predict(frame) == truth).mean() > 0.9
    assert model.n_features_in_ == 6
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    turned = pickle.loads(pickle.dumps(model)).predict_proba(frame.iloc[::-1])
    np.testing.assert_allclose(turned[::-1], model.predict_proba(frame), atol=1e-6)


def test_the_table_is_encoded_as_the_same_table_in_a_file(tmp_path):
    frame, y, _ = penguins()
    frame.assign(species=y).to_csv(tmp_path / "penguins.csv", index=False)
    file = open_data(tmp_path / "penguins.csv", label_column="species")
    memory = from_arrays(frame, y)
    assert memory.columns == file.columns
    np.testing.assert_array_equal(memory.examples, file.examples)
    np.testing.assert_array_equal(memory.labels, file.labels)


def test_unseen_words_count_for_none_and_unseen_gaps_are_refused_in_a_sentence(fitted):
    model, frame, _, _ = fitted
    assert np.isfinite(model.predict_proba(frame.assign(island="Torgersen"))).all()
    with pytest.raises(DataError, match="X, row 0, column 'ringed': there is no number, and the table"):
        model.predict(frame.assign(ringed=pandas.array([None] * len(frame), dtype="boolean")))
    with pytest.raises(DataError, match="should be a DataFrame"):
        model.predict(np.zeros((3, 6)))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.drop(columns="mass"))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pandas.to_timedelta(np.arange(120), unit="s"), "column 'odd' is timedelta64"),
        ([{"a": 1}] * 120, "column 'odd' is object; features must be numbers, dates or categories"),
        ([f"note {i}" for i in range(120)], "120 different categories in 120 rows"),
        ([None] * 120, "column 'odd' has no value in any row"),
        (["7", "x"] * 60, "expected a number, got 'x'"),
    ],
)
def test_what_is_no_feature_costs_a_sentence_that_says_how_to_drop_it(column, words):
    frame, y, _ = penguins()
    with pytest.raises(DataError, match=words) as error:
        CADRClassifier(**FAST).fit(frame.assign(odd=column), y)
    assert "drop(columns='odd')" in str(error.value)
    assert "--ignore-columns" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_fitted_model_is_exported(fitted, tmp_path):
    model, frame, _, _ = fitted
    files = model.export(tmp_path / "out")
    assert {file.name for file in files} == {"model.safetensors", "model.json", "model.pt2", "MODEL_CARD.md"}
    described = json.loads((tmp_path / "out" / "model.json").read_text())
    assert [column["name"] for column in described["input"]["columns"]] == frame.columns.tolist()
    examples = from_arrays(frame, np.arange(len(frame)) % 2).examples
    loaded = torch.export.load(tmp_path / "out" / "model.pt2").module()
    found = loaded(torch.from_numpy(examples)).detach().numpy()
    np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-5)


def test_a_fitted_model_is_a_run(fitted, tmp_path, capsys):
    model, frame, _, _ = fitted
    run = model.save(tmp_path / "run")
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(run), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv")]) == 0
    with (tmp_path / "p.csv").open() as file:
        assert [row["predicted"] for row in csv.DictReader(file)] == model.predict(frame).tolist()
    with pytest.raises(ConfigError, match="holds something already"):
        model.save(tmp_path / "run")
    capsys.readouterr()


def test_a_fitted_model_is_reported_on(fitted, tmp_path):
    model, frame, y, _ = fitted
    assert model.report(tmp_path / "report.html", frame, y) == []
    page = (tmp_path / "report.html").read_text()
    assert "Gentoo" in page
    assert "Worth labelling next" in page
    (problem,) = model.report(tmp_path / "report.html", frame, y.iloc[::-1].reset_index(drop=True))
    assert "The data have changed" in problem
    with pytest.raises(DataError, match="labels that the model was not fitted to"):
        model.report(tmp_path / "report.html", frame, ["King"] * len(frame))
