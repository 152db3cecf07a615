"""Predictions for a population with other class shares: Bayes' rule by hand, shares that are given, and estimated."""

import json

import numpy as np
import pytest

from cadr.classifier import CADRClassifier
from cadr.cli.main import main
from cadr.errors import ConfigError
from cadr.estimate.label_shift import with_prior
from cadr.inference import population
from cadr.inference.population import estimated_shift, parse_prior, shift_to, training_shares
from cadr.inference.predictor import Predictor
from tests.estimate.label_shift_problems import posterior, sample
from tests.report.own_runs import COLUMNS, NAMES, by_hand, read_csv, table, write_csv

BEFORE = np.array([0.5, 0.3, 0.2])


def test_bayes_rule_by_the_densities_themselves():
    """The posterior under one prior becomes, exactly, the posterior under another."""
    random = np.random.default_rng(0)
    before, after = random.dirichlet(np.ones(4), 2)
    x = sample(random.integers(0, 4, 200), random)
    assert with_prior(posterior(x, before), before, after) == pytest.approx(posterior(x, after), abs=1e-12)


def test_a_class_with_no_share_is_never_predicted_and_a_row_that_could_be_nothing_else_stays():
    probabilities = np.array([[0.6, 0.3, 0.1], [1.0, 0.0, 0.0]])
    found = with_prior(probabilities, BEFORE, np.array([0.0, 0.6, 0.4]))
    assert found[0] == pytest.approx([0.0, 0.75, 0.25])  # 0.3 · 2 to 0.1 · 2
    assert found[1].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=.2,b=.5,a, b=0.3", {"a": 0.2, "b": 0.5, "a, b": 0.3}),
        ("a=b=1e-1,b=.9", {"a=b": 0.1, "b": 0.9}),
        ("b=1", {"b": 1.0}),
    ],
)
def test_names_with_commas_and_equals_signs(text, expected):
    assert parse_prior(text, ["a", "b", "a, b", "a=b"]) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "got nothing"),
        ("c=.2", r"expected CLASS=SHARE,… or estimated, got 'c=\.2'"),
        ("a=.2;b=.8", r"expected a number for 'a', got '\.2;b=\.8'"),
        ("a=.2 b=.8", "expected a number for 'a'"),
        ("a=,b=.8", "expected a number for 'a', got ''"),
        ("a=nan", "expected a number for 'a'"),
        ("a=.2,a=.8", "'a' is named twice"),
        ("a=-.2,b=1.2", "the share of 'a' lies between 0 and 1, got -0.2"),
        ("a=.2,b=.7", "add up to 0.9; they should add up to 1"),
        ("a=.5,b=.7", "add up to 1.2"),
    ],
)
def test_what_is_no_distribution_is_refused(text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        shift_to(text, BEFORE[:2], ["a", "b"])


def test_classes_that_are_not_named_divide_the_rest_as_they_were():
    assert shift_to({"a": 0.25}, BEFORE, "abc").after == pytest.approx([0.25, 0.45, 0.3])
    assert shift_to({"a": 0.3333, "b": 0.3333, "c": 0.3333}, BEFORE, "abc").after == pytest.approx([1 / 3] * 3)


def test_estimated_shares_are_those_of_the_rows(monkeypatch):
    random = np.random.default_rng(1)
    before, share = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    f = posterior(sample(random.choice(4, 20_000, p=share), random), before)
    blocks = np.array_split(f, 7)
    assert estimated_shift(blocks, before).after == pytest.approx(share, abs=0.02)
    monkeypatch.setattr(population, "KEPT", 12_000)  # numbers: every eighth row is kept in the end
    assert estimated_shift(blocks, before).after == pytest.approx(share, abs=0.04)
    assert estimated_shift([], before).after is before


def test_thinned_rows_are_evenly_spread(monkeypatch):
    monkeypatch.setattr(population, "KEPT", 10)
    seen: list[list[float]] = []

    def keep(f, before):
        seen.append(f[:, 0].tolist())
        return before

    monkeypatch.setattr(population, "label_shift", keep)
    rows = np.arange(23.0)[:, None]
    estimated_shift([rows[:3], rows[3:11], rows[11:12], rows[12:]], np.array([1.0]))
    (kept,) = seen
    assert len(kept) <= 10
    assert kept == list(range(0, 23, int(kept[1])))


def _new(tmp_path, share, n=400):
    random = np.random.default_rng(3)
    truth = random.choice(3, n, p=share)
    x = (10 + 3 * random.normal(size=(n, 3)) + 6 * np.eye(3)[truth]).astype(np.float32)  # classes overlap
    return write_csv(tmp_path / "new.csv", COLUMNS, x.tolist()), x, truth


def _probabilities(path):
    found = read_csv(path)
    p = np.zeros((len(found), 3))
    index = {name: i for i, name in enumerate(NAMES)}
    for i, row in enumerate(found):
        for k in ("", "_2", "_3"):
            p[i, index[row[f"predicted{k}"]]] = float(row[f"probability{k}"])
    return p


def test_predict_with_given_shares(trees, tmp_path, capsys):
    data, x, _ = _new(tmp_path, [0.1, 0.1, 0.8])
    prior = 'ash=.1,birch, white=.1,oak "royal"=.8'
    assert main(["predict", str(trees), str(data), "--prior", prior, "--out", str(tmp_path / "p.csv")]) == 0
    shares, note = training_shares(trees, Predictor.load(trees, device="cpu"))
    assert note == ""
    kept, _ = table(90)
    assert shares == pytest.approx(by_hand(trees, kept).mean(0), abs=1e-5)
    expected = with_prior(by_hand(trees, x), shares, np.array([0.1, 0.1, 0.8]))
    np.testing.assert_allclose(_probabilities(tmp_path / "p.csv"), expected, atol=2e-6)
    said = capsys.readouterr().out
    assert "The classes' shares were changed:" in said
    assert "80.0 %" in said


def test_estimated_shares_help_where_they_are_others(trees, tmp_path, capsys):
    data, x, truth = _new(tmp_path, [0.05, 0.05, 0.9])
    right = {}
    for name, flags in (("plain", []), ("estimated", ["--prior", "estimated"])):
        out = tmp_path / f"{name}.csv"
        assert main(["predict", str(trees), str(data), *flags, "--out", str(out)]) == 0
        right[name] = (_probabilities(out).argmax(1) == truth).mean()
    assert right["estimated"] > right["plain"] + 0.01
    shares, _ = training_shares(trees, Predictor.load(trees, device="cpu"))
    expected = estimated_shift([by_hand(trees, x)], shares)(by_hand(trees, x))
    np.testing.assert_allclose(_probabilities(tmp_path / "estimated.csv"), expected, atol=1e-4)


def test_without_the_training_data_the_run_itself_says_how_frequent_classes_were(trees, tmp_path, capsys):
    import shutil

    run = tmp_path / "run"
    shutil.copytree(trees, run)
    config = run / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace("trees.csv", "gone.csv"), encoding="utf-8")
    data, _, _ = _new(tmp_path, [0.1, 0.1, 0.8], n=20)
    assert main(["predict", str(run), str(data), "--prior", "ash=.5", "--out", str(tmp_path / "p.csv")]) == 0
    assert "its own P̂ is used as their class prior" in capsys.readouterr().out
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    last = np.array([r["prior"] for r in records if r["kind"] == "train"][-1])
    assert training_shares(run, Predictor.load(run, device="cpu"))[0] == pytest.approx(last / last.sum())


def test_a_mistaken_prior_is_one_sentence_and_leaves_no_file(trees, tmp_path, capsys):
    data, _, _ = _new(tmp_path, [0.1, 0.1, 0.8], n=20)
    assert main(["predict", str(trees), str(data), "--prior", "elm=.5", "--out", str(tmp_path / "p.csv")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "got 'elm=.5'; the classes are" in error
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")
def test_the_estimator():
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 150)
    X = random.normal(size=(150, 3)) + 1.5 * np.eye(3)[truth]
    y = np.where(random.random(150) < 0.5, truth, -1)
    model = CADRClassifier(steps=40, batch=8, ratio=2, random_state=0).fit(X, 5 * y + 4 * (y < 0))  # classes 0, 5, 10
    plain, after = model.predict_proba(X), np.array([0.1, 0.2, 0.7])
    expected = with_prior(plain, model.class_prior_, after)
    for prior in (after, after.tolist(), dict(zip((0, 5, 10), after, strict=True))):
        np.testing.assert_allclose(model.predict_proba(X, prior=prior), expected)
    assert (model.predict(X, prior=after) == model.classes_[expected.argmax(1)]).all()
    some = X[truth == 2]
    assert model.predict_proba(some, prior="estimated")[:, 2].mean() > model.predict_proba(some)[:, 2].mean()
    for prior, sentence in [
        ([0.5, 0.5], "expected a share of each"),
        ("cat=.2", "expected a share of each"),
        ({7: 0.5}, "there is no class 7"),
        ([0.5, 0.5, 0.5], "add up to 1.5"),
    ]:
        with pytest.raises(ConfigError, match=sentence):
            model.predict_proba(X, prior=prior)
