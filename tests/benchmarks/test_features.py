"""The benchmark of pretrained features: how labels are drawn and judged, and that the docs say its figures."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from benchmarks import features

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
RECORDS = features.read(features.RECORD)


@pytest.mark.parametrize(("classes", "n_max", "labels"), [(4, 72, 100), (10, 50, 143)])
def test_labels_fall_by_the_class_in_an_order_of_each_seed(classes, n_max, labels):
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(classes), 300))
    first, second = (features.biased(y, n_max, seed) for seed in (1, 2))
    for found in (first, second):
        counts = np.sort(np.bincount(found[found >= 0]))
        assert counts.sum() == labels
        assert (counts[-1], counts[0]) == (n_max, np.ceil(n_max / 50))
        np.testing.assert_array_equal(found[found >= 0], y[found >= 0])
    assert np.bincount(first[first >= 0]).argmax() != np.bincount(second[second >= 0]).argmax()


def test_macro_recall():
    truth, guess = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 0, 1, 1, 0, 2])
    found = features.judged(guess, truth)
    assert found["macro_recall"] == pytest.approx(100 * balanced_accuracy_score(truth, guess), abs=0.01)
    assert found["accuracy"] == pytest.approx(100 * 4 / 6, abs=0.01)


def test_the_record_is_whole():
    """Every method with every seed, on vectors of one model."""
    expected = {(name, features.EMBEDDING, 0) for name in features.SETTINGS}
    expected |= {(name, *job) for name in features.SETTINGS for job in features.jobs(name)}
    assert {features.key(record) for record in RECORDS} == expected
    assert len(RECORDS) == len(expected)


def test_the_pages_are_the_records():
    assert (ROOT / "benchmarks" / "features.md").read_text(encoding="utf-8") == features.table(RECORDS)
    assert features.summary(RECORDS) in PAGE


def test_what_is_said_of_it():
    """Ours is ahead of every peer on every set, and of itself without features."""
    for name in features.SETTINGS:
        mean = {
            method: np.mean([r["accuracy"] for r in RECORDS if (r["set"], r["method"]) == (name, method)])
            for method in (features.OURS, features.PIXELS, *features.PEERS)
            if method != features.PIXELS or features.SETTINGS[name].side
        }
        assert max(mean, key=lambda method: mean[method]) == features.OURS
    facts = {r["set"]: r for r in RECORDS if r["method"] == features.EMBEDDING}
    labels = {r["set"]: sum(r["labels"]) for r in RECORDS if r["method"] == features.OURS}
    plain = re.sub(r"\s+", " ", PAGE)
    for name, setting in features.SETTINGS.items():
        assert f"{setting.title} ({facts[name]['rows']:,} rows, {labels[name]} labels)" in plain
