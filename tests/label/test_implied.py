"""What answers imply: against a brute-force posterior, and against the truth of populations that are made up."""

import numpy as np
import pytest

from cadr.label.implied import PRECISION, implied_sizes
from cadr.report.query import least_sure


def population(seed, share, believed, n=3000, classes=3):
    """Rows with the probabilities that a model has whose prior is `believed`, and their true classes."""
    random = np.random.default_rng(seed)
    truth = random.choice(classes, n, p=share)
    x = random.normal(size=(n, 2)) + 1.6 * np.array([[0, 0], [1, 0], [0, 1.2]])[truth]
    centres = 1.6 * np.array([[0, 0], [1, 0], [0, 1.2]])
    density = np.exp(-((x[:, None] - centres) ** 2).sum(2) / 2) * believed
    return density / density.sum(1, keepdims=True), truth


def test_the_maximum_and_the_interval_by_a_grid():
    """Two classes: the posterior of one number, on a grid. (One direction of the two is the prior's alone.)"""
    p = np.array([0.9, 0.8, 0.6, 0.55, 0.5, 0.45, 0.3, 0.7, 0.95, 0.2])
    labels = np.array([1, 0, 1, 1, 1])
    found = implied_sizes(np.stack([p, 1 - p], 1), np.arange(5), labels, np.array([4.0, 6.0]), 20)
    grid = np.linspace(-6, 6, 4001)  # d = θ_1 − θ_0; the rest of the prior is that of the sum
    odds = np.exp(grid)[:, None]
    likely = np.log(np.where(labels == 1, (1 - p[:5]) * odds, p[:5]) / (p[:5] + (1 - p[:5]) * odds)).sum(1)
    posterior = np.exp(likely - PRECISION * grid**2 / 4)
    share = (6 + (labels == 1).sum() + 15 * ((1 - p[5:]) * odds / (p[5:] + (1 - p[5:]) * odds)).mean(1)) / 30
    assert found.implied[1] == pytest.approx(share[posterior.argmax()], abs=2e-3)
    mass = np.cumsum(posterior) / posterior.sum()
    low, high = (share[np.searchsorted(mass, q)] for q in (0.05, 0.95))
    assert found.low[1] == pytest.approx(low, abs=0.03)  # of the grid exactly, of ours as if it were normal
    assert found.high[1] == pytest.approx(high, abs=0.03)
    assert found.expected == pytest.approx([p[:5].sum(), 5 - p[:5].sum()])
    assert found.given.tolist() == [1, 4]
    assert found.believed == pytest.approx([(4 + 20 * p.mean()) / 30, (6 + 20 * (1 - p).mean()) / 30])


def test_shares_add_up_and_nothing_is_implied_by_what_was_expected():
    p, _ = population(0, [0.4, 0.4, 0.2], [0.4, 0.4, 0.2], n=200)
    rows = np.flatnonzero(p.max(1) > 0.99)[:6]
    found = implied_sizes(p, rows, p[rows].argmax(1), np.zeros(3), 200)
    assert found.implied.sum() == pytest.approx(1.0)
    assert found.implied == pytest.approx(found.believed, abs=0.01)
    assert found.surprising.tolist() == []


def test_answers_about_chosen_examples_lead_to_the_truth():
    """The model believes a class to be rare that is frequent; only the least sure are asked for."""
    share, believed = [0.3, 0.2, 0.5], [0.5, 0.4, 0.1]
    errors: dict[str, list[float]] = {"believed": [], "implied": []}
    for seed in range(10):
        p, truth = population(seed, share, believed)
        asked = least_sure(p)[:40]
        found = implied_sizes(p, asked, truth[asked], np.zeros(3), len(p))
        actual = np.bincount(truth, minlength=3) / len(truth)
        errors["believed"].append(np.abs(found.believed - actual).sum())
        errors["implied"].append(np.abs(found.implied - actual).sum())
        assert 2 in found.surprising
    assert np.mean(errors["implied"]) < 0.5 * np.mean(errors["believed"])


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    inside = []
    for seed in range(60):
        share = np.random.default_rng(1000 + seed).dirichlet(np.full(3, 8.0))
        p, truth = population(seed, share, [1 / 3] * 3, n=800)
        asked = least_sure(p)[:30]
        found = implied_sizes(p, asked, truth[asked], np.zeros(3), len(p))
        actual = np.bincount(truth, minlength=3) / len(truth)
        inside += ((found.low <= actual) & (actual <= found.high)).tolist()
    assert 0.82 < np.mean(inside) < 0.97


def test_thousands_of_rows_and_hundreds_of_classes_take_no_time():
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(300, 0.05), 10_000)
    found = implied_sizes(p, np.arange(10), random.integers(0, 300, 10), np.zeros(300), 10_000)
    assert found.implied.sum() == pytest.approx(1.0)
    assert (found.low <= found.implied + 1e-6).all()


def test_all_answered():
    p = np.array([[0.6, 0.4], [0.5, 0.5]])
    found = implied_sizes(p, np.arange(2), np.array([1, 1]), np.array([1.0, 1.0]), 2)
    assert found.implied == pytest.approx([0.25, 0.75])
