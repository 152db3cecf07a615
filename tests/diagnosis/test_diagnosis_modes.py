"""Classes of several modes: centres are found and taken where labels ask for them, and nothing changes elsewhere."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.diagnosis_modes import drawn, table
from scipy.spatial.distance import cdist

from cadr.data.pool import MISSING
from cadr.diagnosis.cross_fit import CrossFit
from cadr.diagnosis.diagnose import diagnose
from cadr.diagnosis.features import fit_features
from cadr.diagnosis.modes import FEWEST, LOUD, clearly_better, with_centres
from tests.report.reports import own_pool

ROOT = Path(__file__).parents[2]


def test_nearness_to_the_centres_stands_beside_the_features():
    pool = drawn(3, 3, "class", 1)
    rows = np.arange(len(pool.labels))
    features = fit_features(pool, rows, np.random.default_rng(0))
    wider = with_centres(features, rows, 3, np.random.default_rng(0))
    x, seen = features[rows], wider[rows]
    apart = cdist(x, wider.centres)
    np.testing.assert_array_equal(seen[:, : x.shape[1]], x)
    np.testing.assert_allclose(
        seen[:, x.shape[1] :], LOUD * np.exp(-(apart**2) / (2 * wider.width**2)), rtol=1e-3, atol=1e-4
    )
    assert wider.width == pytest.approx(np.sqrt((apart.min(1) ** 2).mean()), rel=0.05)
    assert len(wider.centres) == 18


def fit(given, rows=None):
    """Probabilities that give every label the same."""
    n = len(given)
    probabilities = np.stack([given, 1 - given], axis=1)
    kept = np.ones(n, dtype=np.bool_) if rows is None else rows
    return CrossFit(probabilities, probabilities[:0], np.zeros(n, dtype=np.int64), np.zeros(0, dtype=np.int64), kept)


def test_better_is_better_by_more_than_chance():
    labels, random = np.zeros(100, dtype=np.int64), np.random.default_rng(0)
    straight = fit(0.6 + 0.1 * random.random(100))
    assert clearly_better(fit(np.full(100, 0.9)), straight, labels)
    assert not clearly_better(
        fit(straight.labelled[:, 0] + 0.2 * random.normal(size=100).clip(-1, 1)), straight, labels
    )
    assert not clearly_better(straight, fit(np.full(100, 0.9)), labels)
    few = np.arange(100) < FEWEST - 1
    assert not clearly_better(fit(np.full(100, 0.9), few), straight, labels)
    assert not clearly_better(fit(np.full(100, 0.9)), straight, np.arange(100))  # each class has a single label


def test_two_clouds_of_one_class_around_another_are_told_apart():
    random = np.random.default_rng(0)
    truth = np.arange(400) % 2
    x = np.where(truth == 0, 4.0 * (2 * (np.arange(400) % 4 == 0) - 1), 0.0)[:, None] + random.normal(size=(400, 2))
    labels = np.where(np.arange(400) < 120, truth, MISSING)
    pool = dataclasses.replace(
        own_pool((60, 60), 400), examples=x.astype(np.float32), labels=labels, class_names=("a", "b")
    )
    found = diagnose(pool, seed=0)
    assert found.bent
    assert found.balanced_accuracy > 0.85
    assert not found.weak
    assert "told apart by a classifier of clusters" in str(found)
    straight = diagnose(dataclasses.replace(pool, labels=np.where(np.arange(400) < FEWEST - 1, truth, MISSING)), seed=0)
    assert not straight.bent
    assert straight.weak


def test_classes_that_a_plane_tells_apart_are_diagnosed_as_before():
    found = diagnose(own_pool((60, 30, 5)), seed=0)
    assert not found.bent
    assert "told apart by a linear classifier" in str(found)


def test_the_documentation_has_the_table_of_the_record():
    records = json.loads((ROOT / "benchmarks" / "diagnosis_modes.json").read_text(encoding="utf-8"))
    guide = (ROOT / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    assert "\n".join(table(records)) in guide
    for before, after in zip(records[::2], records[1::2], strict=True):
        if after["modes"] == 1:
            assert after["bent"] <= 0.2 * after["draws"]
        else:
            assert after["mean_error"] < 0.6 * before["mean_error"]
