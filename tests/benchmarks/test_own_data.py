"""The benchmark of people's own data: what is drawn, how it is judged, and that a stopped run goes on."""

import json

import numpy as np
import pytest
from benchmarks.own import missing, results, sets
from benchmarks.own.methods import METHODS, SIMPLE, Task
from benchmarks.own.minilm import pieces
from benchmarks.own.scores import calibrated, scores
from sklearn.metrics import accuracy_score, log_loss, recall_score

from benchmarks import own_data, own_data_causes

BALANCED, IMBALANCED, RANDOM = missing.MISSINGNESS
NATURAL = np.repeat([0, 1, 2], [3000, 600, 400])
EVEN = np.repeat(np.arange(5), 500)


@pytest.mark.parametrize("y", [NATURAL, EVEN], ids=["natural", "even"])
@pytest.mark.parametrize("kind", missing.MISSINGNESS)
def test_draws(y, kind):
    first = missing.draw("some set", y, kind, 3)
    again, other = missing.draw("some set", y, kind, 3), missing.draw("some set", y, kind, 4)
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.labelled, again.labelled)
    assert not np.array_equal(y[other.rows][other.labelled], y[first.rows][first.labelled])
    assert len(set(first.rows.tolist())) == len(first.rows)
    sizes, counts = np.bincount(y[first.rows]), np.bincount(y[first.rows][first.labelled])
    assert counts.min() >= 2
    assert (counts < sizes).all()
    assert 3 * counts.sum() <= len(first.rows) + 3 * 2 * len(sizes)


def test_populations():
    sizes = np.bincount(NATURAL[missing.draw("a", NATURAL, BALANCED, 1).rows])
    assert sizes.max() <= 400
    assert sizes.min() >= 320
    for kind in (IMBALANCED, RANDOM):
        assert len(missing.draw("a", NATURAL, kind, 1).rows) == len(NATURAL)
    tail = np.bincount(EVEN[missing.draw("a", EVEN, IMBALANCED, 1).rows])
    assert 3 <= tail.max() / tail.min() <= 10.5


def test_labels_fall_geometrically_and_ratios_are_met_once():
    """In a large set, where nothing caps them."""
    y = np.repeat(np.arange(3), 30000)
    found = [missing.draw("a", y, BALANCED, seed) for seed in (1, 2, 3, 4, 5)]
    counts = [np.sort(np.bincount(y[drawn.rows][drawn.labelled])) for drawn in found]
    assert sorted(int(c.sum()) for c in counts) == pytest.approx(missing.TOTALS, abs=2)
    for low, middle, high in counts:
        assert middle == pytest.approx((low * high) ** 0.5, rel=0.2, abs=1)


def test_at_random_is_at_random():
    """The labelled share of a class does not depend on it."""
    y = np.repeat([0, 1], [20000, 10000])
    shares = [np.mean(y[d.rows][d.labelled] == 1) for d in (missing.draw("a", y, RANDOM, s) for s in range(1, 41))]
    assert np.mean(shares) == pytest.approx(1 / 3, abs=0.02)


def test_scores():
    random = np.random.default_rng(0)
    truth = random.integers(3, size=400)
    logits = 2 * np.eye(3)[truth] + random.normal(size=(400, 3))
    p = np.exp(4 * logits) / np.exp(4 * logits).sum(1, keepdims=True)
    found = scores(p, truth, 3)
    assert found["accuracy"] == pytest.approx(100 * accuracy_score(truth, p.argmax(1)), abs=0.01)
    assert found["macro_recall"] == pytest.approx(100 * recall_score(truth, p.argmax(1), average="macro"), abs=0.01)
    assert found["log_loss"] == pytest.approx(log_loss(truth, p, labels=[0, 1, 2]), abs=1e-3)
    assert found["calibrated"] < found["log_loss"] - 0.05  # twice as sure as is right
    assert calibrated(logits, truth) == pytest.approx(found["calibrated"], abs=0.02)  # whatever the temperature
    sure = np.full((200, 2), [0.99, 0.01])
    sure[0] = [0.01, 0.99]  # the one error must not cost as if the other half had shown that there is none
    assert scores(sure, np.zeros(200, dtype=int), 2)["calibrated"] < 0.15


def test_halves_hold_every_set_once_and_are_balanced_over_kinds():
    assert sorted(sets.DECIDING + sets.FINAL) == sorted(sets.PICTURES + sets.TEXTS + sets.TABLES)
    for names in sets.KINDS.values():
        assert abs(len(set(names) & set(sets.DECIDING)) - len(names) / 2) <= 0.5
    assert "penguins" in sets.DECIDING  # the rule is of the names: no result can move a set
    assert "diamonds" in sets.FINAL


@pytest.mark.parametrize("name", [*SIMPLE, "ensemble"])
def test_quick_methods(name):
    random = np.random.default_rng(0)
    truth = np.arange(90) % 3
    X = (3 * np.eye(3)[truth] @ random.normal(size=(3, 6)) + 0.3 * random.normal(size=(90, 6))).astype(np.float32)
    y = np.where(np.arange(90) < 66, truth, -1)
    p = METHODS[name](Task(X, y, 3, 1))
    assert p.shape == (24, 3)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)
    assert np.mean(p.argmax(1) == truth[66:]) > 0.9


def test_pieces_of_words():
    words = ["[UNK]", "[CLS]", "[SEP]", "play", "##ing", "##s", ",", "the", "cafe"]
    vocabulary = {word: i for i, word in enumerate(words)}
    found = [words[i] for i in pieces("Playing, the CAFÉ plays qqq", vocabulary)]
    assert found == ["[CLS]", "play", "##ing", ",", "the", "cafe", "play", "##s", "[UNK]", "[SEP]"]
    assert len(pieces("the " * 200, vocabulary)) == 96


def _run(monkeypatch, tmp_path, *arguments):
    base = ["own_data.py", "--cache", str(tmp_path), "--out", str(tmp_path / "out.jsonl"), "--sets", "penguins"]
    monkeypatch.setattr("sys.argv", [*base, "--processes", "1", *arguments])
    own_data.main()
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]


def test_a_stopped_run_goes_on(monkeypatch, tmp_path):
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 60)
    X = (2 * np.eye(3)[y] @ random.normal(size=(3, 4)) + random.normal(size=(180, 4))).astype(np.float32)
    np.savez(tmp_path / "penguins.npz", X=X, y=y, names=np.array(["a", "b", "c"]))
    first = _run(monkeypatch, tmp_path, "--methods", "logistic_balanced", "logistic", "--seeds", "1", "2")
    assert len(first) == 2 * 2 * 3
    kept = [record for record in first if record["seed"] == 1]
    kept[0]["accuracy"] = 12.34  # made once, so not made again
    own_data.write(tmp_path / "out.jsonl", kept)
    second = _run(monkeypatch, tmp_path, "--methods", "logistic_balanced", "logistic", "--seeds", "1", "2")
    assert [own_data.key(r) for r in second] == [own_data.key(r) for r in first]
    assert second[first.index(next(r for r in first if own_data.key(r) == own_data.key(kept[0])))]["accuracy"] == 12.34
    assert "12.34" not in (tmp_path / "out.md").read_text()
    third = _run(monkeypatch, tmp_path, "--methods", "logistic", "--again", kept[0]["method"])
    assert 12.34 not in [record["accuracy"] for record in third]
    with pytest.raises(SystemExit, match="2"):
        _run(monkeypatch, tmp_path, "--methods", "no_such_method")


def test_summary():
    """Two sets: `a` leads by 10 on one and trails by 4 on the other, where the forest is best."""

    def record(name, method, seed, accuracy):
        figures = {"accuracy": accuracy, "macro_recall": 50.0, "calibrated": 1.0, "seconds": 1.0}
        return {"set": name, "missing": RANDOM, "method": method, "seed": seed, **figures}

    rows = [("penguins", "logistic_balanced", 70), ("penguins", "forest_balanced", 60), ("penguins", "a", 80)]
    rows += [("digits", "logistic_balanced", 50), ("digits", "forest_balanced", 54), ("digits", "a", 46)]
    text = results.build([record(*row[:2], seed, row[2] + seed) for row in rows for seed in (1, 2)], "a command")
    line = next(line for line in text.splitlines() if line.startswith("| a | 2 |"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["a", "2", "64.5", "50.0", "1.000", "+3.0", "+1.0", "1", "1", "8.0", "1.0"]
    assert "| a | 81.5 ± 0.5 |" in text.replace("47.5 ± 0.5 | ", "")


def test_standings():
    """A network is better by more than its standard error; a lone seed says nothing."""

    def rows(name, method, accuracies, missing=BALANCED):
        return [
            {"set": name, "missing": missing, "method": method, "seed": seed, "accuracy": accuracy}
            for seed, accuracy in enumerate(accuracies, 1)
        ]

    records = rows("digits", "ensemble", [80, 84, 82]) + rows("digits", "logistic", [70, 72, 71])
    records += rows("digits", "cadr", [83, 86, 84]) + rows("digits", "fixmatch", [99])
    records += rows("penguins", "ensemble", [90, 92, 91]) + rows("penguins", "logistic", [92, 95, 95])
    records += rows("penguins", "forest_balanced", [99, 70, 70]) + rows("penguins", "cadr", [80, 95, 96])
    found = results.standings(records, "ensemble")
    assert found == {("digits", BALANCED): (11.0, False), ("penguins", BALANCED): (-3.0, False)}
    without = [record for record in records if record["method"] != "logistic" or record["set"] == "digits"]
    penguins = results.standings(without, "ensemble")["penguins", BALANCED]
    assert penguins.ahead == pytest.approx(91 - 239 / 3)
    assert penguins.near
    np.testing.assert_allclose(results.leads(records, "ensemble")["logistic"], (4.0, 7.0))
    assert "fixmatch" in results.leads(records, "ensemble")


def test_causes(tmp_path):
    """Every variant runs on a draw, and the table says by how much it differs from the default."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 60)
    X = (2 * np.eye(3)[y] @ random.normal(size=(3, 4)) + random.normal(size=(180, 4))).astype(np.float32)
    np.savez(tmp_path / "penguins.npz", X=X, y=y, names=np.array(["a", "b", "c"]))
    wanted = (own_data_causes.DEFAULT, "told the true shares", "logistic regression, balanced")
    found = own_data_causes.of_draw(own_data_causes.Draw("penguins", BALANCED, 1, tmp_path, wanted))
    assert [record["variant"] for record in found] == list(wanted)
    other = [
        record | {"seed": 2, "accuracy": record["accuracy"] - (record["variant"] != "default")} for record in found
    ]
    text = own_data_causes.build([*found, *other])
    base, told = found[0]["accuracy"], found[1]["accuracy"]
    assert f"| **default** | {base:.1f} |" in text
    assert f"| told the true shares | {told - 0.5:.1f} | {told - base - 0.5:+.1f} ± 0.5 |" in text
