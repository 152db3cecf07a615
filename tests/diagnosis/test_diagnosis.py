"""A diagnosis of data whose truth is known, and of data about which nothing can be said."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cadr.data import Pool, apply, make_split, open_data
from cadr.data.protocols import PROTOCOLS
from cadr.data.sources.columns import Column
from cadr.diagnosis import cross_fit as crossfit
from cadr.diagnosis import diagnose as module
from cadr.diagnosis.diagnose import diagnose
from cadr.diagnosis.features import _flat, fit_features
from cadr.diagnosis.result import CAVEAT, ClassDiagnosis, flag_of
from cadr.errors import DataError


def digits(protocol, **parameters):
    pool = open_data("digits")
    return apply(pool, make_split(pool, PROTOCOLS[protocol](**parameters), seed=1))


def blobs(counts, rows=600, width=6, spread=1.0, seed=0, names=None):
    """Gaussian classes around the corners of a simplex; counts[c] labels of class c, the other rows unlabelled."""
    random = np.random.default_rng(seed)
    classes = len(counts)
    labelled = np.repeat(np.arange(classes), counts)
    truth = np.concatenate([labelled, np.arange(rows) % classes])
    centres = 3.0 * np.eye(classes, width)
    x = (centres[truth] + spread * random.normal(size=(len(truth), width))).astype(np.float32)
    labels = np.concatenate([labelled, np.full(rows, -1)])
    names = names or tuple(f"class {c}" for c in range(classes))
    return Pool(x, labels, names, "blobs", hidden_labels=truth)


@pytest.fixture(scope="module")
def biased():
    pool = digits("longtail", n_max=50, gamma=20.0)
    return pool, diagnose(pool)


def test_finds_the_bias_and_covers_the_truth(biased):
    pool, found = biased
    missing = pool.labels < 0
    truth = np.bincount(pool.hidden_labels[missing], minlength=10) / missing.sum()
    share = np.array([c.share for c in found.classes])
    low, high = np.array([c.share_interval for c in found.classes]).T
    assert found.p_value < 0.001
    assert np.abs(share - truth).mean() < 0.025
    assert share.sum() == pytest.approx(1.0)
    assert ((low <= truth) & (truth <= high)).sum() >= 9
    assert [c.labels for c in found.classes] == pool.counts.tolist()


def test_propensities_and_effective_labels_follow_from_the_shares(biased):
    pool, found = biased
    unlabelled = int((pool.labels < 0).sum())
    weights = []
    for c in found.classes:
        assert c.propensity == pytest.approx(c.labels / (c.labels + unlabelled * c.share))
        assert c.prior == pytest.approx((c.labels + unlabelled * c.share) / len(pool.labels))
        assert c.propensity_interval[0] <= c.propensity <= c.propensity_interval[1]
        weights += [1 / c.propensity] * c.labels
    assert found.effective_labels == pytest.approx(np.sum(weights) ** 2 / np.sum(np.square(weights)))
    propensities = [c.propensity for c in found.classes]
    assert found.propensity_ratio == pytest.approx(max(propensities) / min(propensities))


def test_verdict_is_two_sentences_that_name_the_classes(biased):
    _, found = biased
    first, second = found.verdict.split(". ")
    least, most, _ = found.apart
    assert first.startswith("Labels are NOT missing at random (p < 0.001)")
    assert f"class {least.name} is labelled about" in first
    assert f"times less often than class {most.name}" in first
    assert f"worth about {found.effective_labels:,.0f}" in second
    assert "--algorithm cadr" in second
    assert found.warnings == ("Under 10 labels, intervals may be too narrow: 6, 7, 8, 9.",)


def test_text_and_json_hold_everything(biased):
    _, found = biased
    text, data = str(found), json.loads(found.to_json())
    assert text.startswith(found.verdict)
    assert text.endswith(CAVEAT)
    assert text.count("█") > 100
    assert data["verdict"] == found.verdict
    assert data["classes"][3]["share_interval"] == list(found.classes[3].share_interval)
    assert data["classes"][9]["flag"] == "few"
    assert max(map(len, text.splitlines()[2:13])) <= 80


def test_the_seed_decides_everything(biased):
    pool, found = biased
    assert diagnose(pool) == found
    assert diagnose(pool, seed=1) != found


def test_random_labels_raise_no_alarm():
    found = diagnose(digits("uniform", n=200))
    assert found.missing_at_random
    assert "no sign" in found.verdict
    assert found.warnings == ()
    assert found.effective_labels == pytest.approx(200, rel=0.1)


def test_a_single_label_is_not_estimable_and_shows_no_figure():
    found = diagnose(blobs([60, 40, 1]))
    assert [c.flag for c in found.classes] == ["ok", "ok", "not estimable"]
    assert found.classes[2].share_interval is None
    line = next(line for line in str(found).splitlines() if line.startswith("class 2 "))
    assert line.split()[-4:] == ["–", "–", "not", "estimable"]
    assert "class 2" in found.warnings[0]


def test_a_named_class_without_labels_is_listed():
    found = diagnose(blobs([60, 40, 0, 50]))
    assert found.classes[2].flag == "not estimable"
    assert found.classes[2].share is None
    assert sum(c.share for c in found.classes if c.share is not None) == pytest.approx(1.0)
    assert "class 2" in str(found)


def test_weak_separability_is_said():
    found = diagnose(blobs([60, 40, 50], spread=12.0))
    assert "do not trust" in found.verdict
    assert any("Weak separability" in warning for warning in found.warnings)


def test_memory_mapped_features_give_the_same_result(tmp_path):
    pool = blobs([40, 20, 10])
    np.save(tmp_path / "x.npy", pool.examples)
    np.save(tmp_path / "y.npy", pool.labels)
    mapped = open_data(tmp_path / "x.npy", labels=tmp_path / "y.npy")
    assert diagnose(mapped).p_value == diagnose(pool).p_value
    assert [c.share for c in diagnose(mapped).classes] == [c.share for c in diagnose(pool).classes]


def test_limits_for_large_data_hardly_move_the_estimate(monkeypatch):
    pool = blobs([400, 200, 100, 50], rows=4000)
    whole = diagnose(pool)
    for where, name, value in [
        (crossfit, "TRAINING_LABELS", 240),
        (module, "SCORES", 12_000),
        (module, "REPEATED_LABELS", 200),
        (module, "BOOTSTRAP_ROWS", 500),
        (module, "TEST_ROWS", 1000),
        (module, "CHECK_ROWS", 300),
    ]:
        monkeypatch.setattr(where, name, value)
    capped = diagnose(pool)
    assert capped.labelled == 750
    assert not capped.missing_at_random
    for a, b in zip(whole.classes, capped.classes, strict=True):
        assert a.share == pytest.approx(b.share, abs=0.06)
        assert a.labels == b.labels


def test_large_classes_give_up_labels_before_small_ones():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(4), [400, 200, 100, 50]))
    kept = crossfit._capped(labels, 240, np.random.default_rng(1))
    assert np.bincount(labels[kept]).tolist() == [63, 63, 63, 50]


def test_classes_of_one_label_and_of_none_are_not_compared(biased):
    """Nothing is known of how often they are labelled, nor of whether they are told apart."""
    of = [("a", 60, 0.5), ("b", 40, 0.2), ("c", 1, None), ("d", 0, None)]
    classes = tuple(ClassDiagnosis(name, n, 0.0, flag_of(n), propensity=phi, recall=phi) for name, n, phi in of)
    found = dataclasses.replace(biased[1], classes=classes, balanced_accuracy=1 / 2)
    assert [c.name for c in found.extremes] == ["b", "a"]
    assert found.propensity_ratio == pytest.approx(2.5)
    assert found.separability == pytest.approx(0.0)  # as good as guessing one of the two


def test_large_images_are_looked_at_by_the_means_of_squares():
    images = np.random.default_rng(0).integers(0, 256, (3, 64, 96, 3), dtype=np.uint8)
    squares = images[:, :63].reshape(3, 21, 3, 32, 3, 3)  # of three by three; the last row fills none
    np.testing.assert_allclose(_flat(images), squares.mean((2, 4)).reshape(3, -1) / 255, rtol=1e-5)


def test_the_estimate_is_the_mean_over_cross_fits_with_folds_of_their_own(monkeypatch):
    pool = blobs([12, 8, 4], spread=2.0)

    def shares(repeats):
        monkeypatch.setattr(module, "REPEATS", repeats)
        return np.array([[c.share for c in diagnose(pool, seed=seed).classes] for seed in range(8)], dtype=float)

    assert shares(4).var(0).sum() < 0.6 * shares(1).var(0).sum()
    assert shares(4).sum(1) == pytest.approx(np.ones(8))


def test_a_diagnosis_waits_for_no_torch():
    code = (
        "import sys; import cadr.diagnosis.diagnose; from cadr.cli import diagnose; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rows_outside_the_stream_are_left_out():
    pool = blobs([40, 40], rows=400)
    stream = np.flatnonzero((pool.hidden_labels == 0) | (np.arange(len(pool.labels)) % 4 == 0))
    found = diagnose(dataclasses.replace(pool, stream=stream))
    unlabelled = stream[pool.labels[stream] < 0]
    assert found.unlabelled == len(unlabelled)
    truth = (pool.hidden_labels[unlabelled] == 0).mean()
    assert found.classes[0].share == pytest.approx(truth, abs=0.05)
    outside = np.setdiff1d(np.flatnonzero(pool.labels < 0), stream)
    other = pool.examples.copy()
    other[outside] += 1000
    assert diagnose(dataclasses.replace(pool, examples=other, stream=stream)) == found  # whatever they hold


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.full(40, -1), "every label is missing"),
        (np.arange(40) % 2, "no label is missing"),
        (np.array([-1, *(np.arange(39) % 2)]), "a single label is missing"),
        (np.where(np.arange(40) < 9, 1, -1), "all 9 labels are of class 'b'"),
        (np.where(np.arange(40) < 2, np.arange(40), -1), "more than one label"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused_in_a_sentence(labels, words):
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    truth = np.where(labels < 0, np.arange(40) % 2, labels)
    pool = Pool(x, labels.astype(np.int64), ("a", "b"), "mine", hidden_labels=truth)
    with pytest.raises(DataError, match=words) as error:
        diagnose(pool)
    assert "\n" not in str(error.value)


def test_nan_in_mapped_features_is_refused(tmp_path):
    x = np.zeros((300_000, 16), dtype=np.float32)
    x[:, 3] = np.nan
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", np.where(np.arange(300_000) < 100, np.arange(300_000) % 2, -1))
    with pytest.raises(DataError, match="not a finite number"):
        diagnose(open_data(tmp_path / "x.npy", labels=tmp_path / "y.npy"))


def test_the_guide_runs(capsys):
    guide = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.startswith("Labels are NOT missing at random (p < 0.001): class 2")


def test_a_rare_word_is_divided_as_in_training_and_a_rare_number_as_ever():
    columns = (Column("size"), Column("shop", ("few", "many")), Column("flag"))
    x = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    x[:, 1], x[:, 2], x[:, 3] = np.arange(400) == 7, np.arange(400) % 3 == 0, np.arange(400) == 9
    names = tuple(feature for column in columns for feature in column.features)
    labels = np.where(np.arange(400) % 4 == 0, np.arange(400) % 8 // 4, -1)
    rows = np.arange(400)
    divided = x.std(0)
    for table, least in ((columns, 0.2), (None, divided[1])):
        pool = Pool(x, labels, ("u", "v"), feature_names=names, columns=table)
        found = fit_features(pool, rows, np.random.default_rng(0))[rows]
        by = [divided[0], max(divided[1], least), divided[2], divided[3]]
        np.testing.assert_allclose(found, (x - x.mean(0)) / by, rtol=1e-4, atol=1e-5)
