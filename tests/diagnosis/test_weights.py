"""Weights that undo the bias: against the diagnosis, by hand, as repeated rows, and in the files that others read."""

import csv
import dataclasses

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from cadr.cli.main import main
from cadr.data.pool import MISSING, Pool
from cadr.diagnosis import weights as weights_module
from cadr.diagnosis.cross_fit import INVERSE_RIDGE, cross_fit
from cadr.diagnosis.diagnose import diagnose
from cadr.diagnosis.features import fit_features
from cadr.diagnosis.weights import Estimate, row_weights, write_weights
from cadr.errors import CadrError
from cadr.estimate import aipw
from cadr.estimate.label_shift import class_shares
from tests.report.own_runs import write_csv

PROPENSITY = np.array([0.5, 0.2, 0.1])


def population(n=600, seed=0, names=("a", "b", "c")):
    """Features, classes, and a pool in which the class decides who is labelled."""
    random = np.random.default_rng(seed)
    y = random.choice(3, n, p=[0.5, 0.3, 0.2])
    x = (2.5 * np.eye(3)[y] + random.normal(size=(n, 3))).astype(np.float32)
    labels = np.where(random.random(n) < PROPENSITY[y], y, MISSING)
    return x, y, Pool(x, labels, names, "population")


@pytest.fixture(scope="module")
def weighed():
    x, y, pool = population()
    return x, y, row_weights(pool, replicates=20)


def test_propensities_are_those_of_the_diagnosis(weighed):
    _, y, weights = weighed
    told = [c.propensity for c in diagnose(weights.pool).classes]
    assert weights.class_propensity.tolist() == pytest.approx(told, rel=1e-12)
    assert weights.class_propensity == pytest.approx(PROPENSITY, rel=0.4)
    known = weights.labelled
    assert weights.propensity[known].tolist() == weights.class_propensity[y[known]].tolist()
    assert weights.weight[known] == pytest.approx(1 / weights.class_propensity[y[known]])
    assert np.isnan(weights.weight[~known]).all()


def test_weighted_labels_stand_for_all_rows(weighed):
    _, y, weights = weighed
    assert np.nansum(weights.weight) == pytest.approx(len(y))
    assert np.nanmean(weights.stabilised) == pytest.approx(1.0)
    assert np.nanmean(weights.trimmed) == pytest.approx(1.0)


def test_the_probability_of_a_row_like_this(weighed):
    """Σ_c P(c | x) φ_c, with the densities themselves; on average it is the share that is labelled."""
    x, _, weights = weighed
    density = np.exp(-((x[:, None] - 2.5 * np.eye(3)) ** 2).sum(2) / 2) * [0.5, 0.3, 0.2]
    expected = density @ PROPENSITY / density.sum(1)
    assert np.abs(weights.given_x - expected).mean() < 0.05
    assert weights.given_x.mean() == pytest.approx(weights.labelled.mean(), abs=0.03)
    assert ((weights.given_x > 0) & (weights.given_x < 1)).all()


def test_a_weight_is_cut_and_what_that_costs_is_said():
    _, _, pool = population(seed=3)
    rare = dataclasses.replace(row_weights(pool), class_propensity=np.array([0.5, 0.2, 0.001]))
    heavy = rare.stabilised > 2.0
    cut = dataclasses.replace(rare, trim=2.0)
    assert heavy.any()
    by_hand = np.minimum(rare.stabilised, 2.0)
    np.testing.assert_allclose(cut.trimmed, by_hand / np.nanmean(by_hand))
    assert rare.effective(cut.trimmed) > rare.effective(rare.weight)
    w = rare.weight[rare.labelled]
    assert rare.effective(rare.weight) == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_an_estimate_is_that_of_the_torch_function(weighed):
    x, y, weights = weighed
    z = y + x[:, 0].astype(np.float64)
    imputed = 0.5 * x[:, 1].astype(np.float64) + 1.0
    values = np.where(weights.labelled, z, np.nan)
    missing, propensity = torch.from_numpy(~weights.labelled), torch.from_numpy(weights.propensity)
    tensors = (torch.from_numpy(np.nan_to_num(values)), torch.from_numpy(imputed))
    assert weights.mean(values, imputed).value == pytest.approx(float(aipw.aipw(*tensors, missing, propensity).value))
    assert weights.mean(values).value == pytest.approx(float(aipw.ipw(tensors[0], missing, propensity).value))


def test_the_standard_error_is_that_of_the_replicates(weighed):
    _, y, weights = weighed
    values = np.where(weights.labelled, y, np.nan)
    draws = []
    for rows, propensity in zip(weights.replicates.rows, weights.replicates.propensity, strict=True):
        total = sum(rows[i] * y[i] / propensity[y[i]] for i in np.flatnonzero(weights.labelled))
        draws.append(total / rows.sum())
    found = weights.mean(values)
    assert found.standard_error == pytest.approx(np.std(draws, ddof=1))
    assert found.replicates == len(draws)
    low, high = Estimate(1.0, 0.5, 25).interval()
    assert (low, high) == pytest.approx((1 - 2.0639 * 0.5, 1 + 2.0639 * 0.5), rel=1e-4)  # of a table of Student's t


def test_the_mean_of_few_labels_varies_as_much_as_it_should():
    """Replicates of k values have the unbiased variance of their mean, where exponential weights fall short."""
    random = np.random.default_rng(0)
    k, rest = 6, 40
    labels = np.concatenate([np.zeros(k), np.ones(10), np.full(rest, -1)]).astype(np.int64)
    pool = Pool(random.normal(size=(len(labels), 2)).astype(np.float32), labels, ("few", "more"), "few")
    labelled = np.flatnonzero(labels >= 0)
    drawn = weights_module._drawn(pool, labelled, np.bincount(labels[labelled])[labels[labelled]], 40_000, random)
    values = random.normal(size=k)
    means = drawn[:, :k] @ values / drawn[:, :k].sum(1)
    assert means.var() == pytest.approx(values.var(ddof=1) / k, rel=0.05)
    assert drawn.mean(0) == pytest.approx(1.0, abs=0.03)
    assert drawn[:, -rest:].var() == pytest.approx(1.0, abs=0.03)  # without a label: exponential


def test_a_good_imputation_makes_the_estimate_surer_and_no_imputation_makes_it_wrong():
    random = np.random.default_rng(0)
    x, y, pool = population(n=1500)
    z = 2.0 * y + random.normal(size=1500)
    weights = row_weights(pool, replicates=40)
    values = np.where(weights.labelled, z, np.nan)
    nonsense, plain = weights.mean(values, random.normal(size=1500)), weights.mean(values)
    good = weights.mean(values, 2.0 * (x @ np.array([0.0, 1.0, 2.0])) / 2.5)
    truth = 2.0 * (0.3 + 2 * 0.2)
    for found in (nonsense, plain, good):
        assert abs(found.value - truth) < 3 * found.standard_error
    assert abs(z[weights.labelled].mean() - truth) > 3 * plain.standard_error  # the labelled alone are biased


def test_replicates_draw_rows_and_let_propensities_follow(weighed):
    _, _, weights = weighed
    rows, propensity = weights.replicates.rows, weights.replicates.propensity
    assert rows.shape == (20, 600)
    assert rows.mean() == pytest.approx(1.0, abs=0.05)
    assert rows.var() == pytest.approx(1.0, abs=0.1)  # of an exponential distribution
    centre, spread = np.log(propensity).mean(0), np.log(propensity).std(0)
    assert centre == pytest.approx(np.log(weights.class_propensity), abs=0.25)
    assert (spread > 0.02).all()
    again = row_weights(weights.pool, replicates=20)
    assert np.array_equal(again.replicates.propensity, propensity)
    assert not np.array_equal(row_weights(weights.pool, seed=1, replicates=20).replicates.propensity, propensity)


def test_whole_weights_are_repeated_rows_to_the_classifier_and_to_the_shares():
    _, _, pool = population(n=200)
    labelled, without = np.flatnonzero(pool.labels >= 0), np.flatnonzero(pool.labels < 0)
    labels = pool.labels[labelled]
    random = np.random.default_rng(0)
    weights, others = random.integers(1, 4, len(labelled)), random.integers(1, 4, len(without))
    features = fit_features(pool, np.arange(200), random)
    fit = cross_fit(features, labelled, labels, without, np.random.default_rng(1), weights=weights.astype(float))
    for fold in range(5):
        kept = fit.fold_labelled != fold
        rows = np.repeat(labelled[kept], weights[kept])
        model = LogisticRegression(C=INVERSE_RIDGE, max_iter=2000, tol=1e-8).fit(features[rows], pool.labels[rows])
        scored = without[fit.fold_unlabelled == fold]
        np.testing.assert_allclose(
            fit.unlabelled[fit.fold_unlabelled == fold], model.predict_proba(features[scored]), atol=1e-2
        )
    repeated = class_shares(
        np.repeat(fit.labelled, weights, 0), np.repeat(labels, weights), np.repeat(fit.unlabelled, others, 0)
    )
    found = class_shares(fit.labelled, labels, fit.unlabelled, weights.astype(float), others.astype(float))
    assert found.raw == pytest.approx(repeated.raw, abs=1e-5)
    assert found.recalibrated == pytest.approx(repeated.recalibrated, abs=1e-5)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_files_say_all_of_it(weighed, tmp_path):
    _, y, weights = weighed
    assert write_weights(tmp_path / "w.csv", weights) == [tmp_path / "w.csv", tmp_path / "w.classes.csv"]
    rows, classes = read(tmp_path / "w.csv"), read(tmp_path / "w.classes.csv")
    assert [row["row"] for row in rows] == [str(i) for i in range(600)]
    assert [row["label"] for row in rows] == [
        "abc"[c] if known else "" for c, known in zip(y, weights.labelled, strict=True)
    ]
    for name in ("propensity", "given_x", "weight", "stabilised", "trimmed"):
        written = np.array([float(row[name] or "nan") for row in rows])
        np.testing.assert_allclose(written, getattr(weights, name), rtol=1e-6)
    assert [c["class"] for c in classes] == ["a", "b", "c"]
    assert [int(c["labels"]) for c in classes] == weights.pool.counts.tolist()
    for b in (0, 19):
        own = np.array([float(c[f"replicate_{b + 1}"]) for c in classes])
        np.testing.assert_allclose(own, weights.replicates.propensity[b], rtol=1e-6)
        expected = weights.replicates.rows[b] / np.where(weights.labelled, own[y], 1.0)
        np.testing.assert_allclose([float(row[f"replicate_{b + 1}"]) for row in rows], expected, rtol=1e-6)


def table(folder, **more):
    x, _, pool = population(n=400, names=('a "b"', "c, d", "é"))
    names = [pool.class_names[c] if c >= 0 else "" for c in pool.labels]
    rows = [[f"no. {i}", *x[i].tolist(), name] for i, name in enumerate(names)]
    return write_csv(folder / "table.csv", ["id", "p", "q", "r", "label"], rows)


def test_from_the_shell(tmp_path, capsys):
    data, out = table(tmp_path), tmp_path / "w.csv"
    command = ["diagnose", str(data), "--ignore-columns", "id", "--weights-out", str(out)]
    assert main([*command, "--replicates", "3", "--trim", "1.5"]) == 0
    said = capsys.readouterr().out
    assert "weighted, are worth" in said
    assert "weights cut at 1.5 times the mean" in said
    rows = read(out)
    assert [row["id"] for row in rows] == [f"no. {i}" for i in range(400)]
    assert {row["label"] for row in rows} == {'a "b"', "c, d", "é", ""}
    assert list(rows[0])[-3:] == ["replicate_1", "replicate_2", "replicate_3"]
    assert main([*command, "--json"]) == 0
    found = capsys.readouterr()
    assert found.out.startswith("{")
    assert found.out.rstrip().endswith("}")
    assert "Weights of rows are in" in found.err


def test_a_class_with_one_label_has_no_weight(tmp_path, capsys):
    _, _, pool = population(n=200)
    labels = pool.labels.copy()
    first, *others = np.flatnonzero(labels == 2)
    labels[others] = MISSING
    weights = row_weights(dataclasses.replace(pool, labels=labels), replicates=2)
    assert np.isnan(weights.class_propensity[2])
    assert np.isnan(weights.weight[first])
    assert np.isfinite(weights.mean(np.ones(200)).value)
    write_weights(tmp_path / "w.csv", weights)
    row = read(tmp_path / "w.csv")[first]
    assert (row["label"], row["propensity"], row["weight"], row["replicate_1"]) == ("c", "", "", "")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--weights-out", "table.csv"], "is what to diagnose; write the weights to another file"),
        (["--weights-out", "w.txt"], "weights are written to a file that ends in .csv"),
        (["--weights-out", "w.csv", "--trim", "0.5"], "trim must be at least 1"),
        (["--weights-out", "w.csv", "--replicates", "-1"], "replicates must be 0 or at least 2"),
        (["--weights-out", "w.csv", "--replicates", "1"], "replicates must be 0 or at least 2"),
    ],
)
def test_mistakes_cost_a_sentence_and_no_file(tmp_path, monkeypatch, flags, sentence, capsys):
    table(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "table.csv").read_bytes()
    assert main(["diagnose", "table.csv", "--ignore-columns", "id", *flags]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]
    assert (tmp_path / "table.csv").read_bytes() == before


def test_what_is_no_number_is_refused(weighed):
    _, y, weights = weighed
    with pytest.raises(CadrError, match="should be finite numbers"):
        weights.mean(np.where(weights.labelled, np.inf, y))
    with pytest.raises(CadrError, match="should be finite numbers"):
        weights.mean(y, np.full(600, np.nan))
    with pytest.raises(CadrError, match="needs replicates"):
        row_weights(weights.pool).mean(y)
