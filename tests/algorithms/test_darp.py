"""DARP: the refinement against SciPy's generic solver, what is stored and when it is refined, and its reduction."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, minimize

from cadr.algorithms import DARP, FixMatch
from cadr.algorithms.darp import refine, truncate
from cadr.errors import ConfigError
from tests.algorithms.logits import COUNTS, FACTS, array, close, gradients, run, slope, views
from tests.oracles import rivals
from tests.oracles.softmax import log_softmax, softmax


def _predictions(n, classes, seed, scale=1.5):
    return softmax(scale * np.random.default_rng(seed).normal(size=(n, classes)))


def _generic(p, counts):
    """The convex programme as it stands: minimise the objective under rows and columns that add up."""
    n, c = p.shape
    sums = np.zeros((n + c - 1, n * c))
    for i in range(n):
        sums[i, i * c : (i + 1) * c] = 1.0
    for k in range(c - 1):  # the last column follows
        sums[n + k, k::c] = 1.0
    totals = np.concatenate([np.ones(n), counts[:-1]])
    start = np.tile(counts / counts.sum(), (n, 1)).reshape(-1)
    found = minimize(
        lambda q: rivals.refinement_objective(q.reshape(n, c), p),
        start,
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * (n * c),
        constraints=LinearConstraint(sums, totals, totals),
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success, found.message
    return found.x.reshape(n, c)


@pytest.mark.parametrize(("n", "classes", "seed"), [(6, 3, 0), (8, 2, 1), (9, 4, 2)])
def test_the_solution_is_that_of_a_generic_solver(n, classes, seed):
    p = _predictions(n, classes, seed)
    counts = np.random.default_rng(seed + 10).dirichlet(np.full(classes, 3.0)) * n
    ours = array(refine(torch.tensor(p), torch.tensor(counts), iterations=300))
    expected = _generic(p, counts)
    close(ours.sum(1), np.ones(n), 1e-9)
    close(ours.sum(0), counts, 1e-6)
    close(ours, expected, 2e-4)
    assert np.abs(p - expected).max() > 0.05


def test_ten_turns_come_close_in_single_precision():
    p = torch.tensor(_predictions(400, 10, 3, scale=4.0)).float()
    counts = torch.tensor(np.geomspace(100, 5, 10) / np.geomspace(100, 5, 10).sum() * 400).float()
    refined = refine(truncate(p, counts, 2.0), counts, iterations=10)
    assert refined.isfinite().all()
    close(refined.sum(1), np.ones(400), 1e-5)
    assert (refined.sum(0) - counts).abs().sum() < 0.02 * 400
    assert (p.sum(0) - counts).abs().sum() > 0.5 * 400


def test_refinement_survives_certain_predictions():
    """Rows without entropy cannot be moved, and divide nothing by zero."""
    p = torch.eye(4).repeat(25, 1)
    counts = torch.tensor([70.0, 20.0, 8.0, 2.0])
    refined = refine(truncate(p, counts, 2.0), counts, iterations=10)
    assert refined.isfinite().all()
    close(refined.sum(1), np.ones(100), 1e-5)


def test_predictions_that_add_up_already_stay():
    p = torch.tensor(_predictions(30, 4, 5))
    close(refine(p, p.sum(0), iterations=10), array(p), 1e-6)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_truncation(alpha):
    p = _predictions(50, 4, 7)
    counts = np.array([30.0, 12.0, 6.0, 2.0])
    close(truncate(torch.tensor(p), torch.tensor(counts), alpha), rivals.truncate(p, counts, alpha), 1e-9)


@pytest.mark.parametrize("target", ["labelled", "uniform", "given"])
def test_target_counts(target):
    given = (0.1, 0.2, 0.3, 0.4) if target == "given" else ()
    state = DARP(target=target, target_prior=given).init(FACTS)
    shares = {"labelled": np.array(COUNTS) / sum(COUNTS), "given": np.array(given), "uniform": np.full(4, 0.25)}
    close(state["counts"], 300 * shares[target])


def _most_likely(f, p):
    """The q that maximises Σ_i log Σ_c q_c f_ic / p_c, by a generic solver."""
    found = minimize(
        lambda q: -np.log(f @ (q / p)).mean(),
        np.full(len(p), 1 / len(p)),
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * len(p),
        constraints=LinearConstraint(np.ones((1, len(p))), 1.0, 1.0),
        options={"ftol": 1e-12},
    )
    assert found.success, found.message
    return found.x


@pytest.mark.parametrize("least", [0.0, 0.5])
def test_estimated_counts_are_the_most_likely_ones_above_a_floor(least):
    algorithm = DARP(target="estimated", least_share=least, warm_up=0.0)
    state = algorithm.init(FACTS)
    predicted = softmax(2.0 * np.random.default_rng(8).normal(size=(300, 4)) + [3.0, 1.5, 1.0, -4.0])
    state["predictions"] = torch.tensor(predicted).float()
    likely = _most_likely(predicted, np.array(COUNTS) / sum(COUNTS))
    assert likely.min() < 0.01
    expected = np.maximum(likely, least / 4)
    refreshed = algorithm.refresh(state, 10, 100)
    close(refreshed["counts"] / 300, expected / expected.sum(), 2e-3)
    again = algorithm.refresh({**refreshed, "predictions": state["predictions"].flip(1)}, 20, 100)
    assert torch.equal(again["counts"], refreshed["counts"])  # estimated once


def test_before_its_warm_up_is_over_darp_is_fixmatch():
    algorithm = DARP(threshold=0.6, warm_up=0.4)
    state = algorithm.init(FACTS)
    for step in range(6):
        batch = views(step, step=step)
        ours, base = run(algorithm, batch, state), run(FixMatch(threshold=0.6), batch)
        assert torch.equal(ours.mask, base.mask)
        assert torch.equal(ours.terms["unlabelled"], base.terms["unlabelled"])
        state = algorithm.refresh(ours.state, 10 * step, 200)
    base, ended = run(FixMatch(threshold=0.6), views(9)), {79: False, 80: True}  # of 200, of which 0.4 are 80
    for done, differs in ended.items():
        ours = run(algorithm, views(9), algorithm.refresh(state, done, 200))
        assert torch.equal(ours.terms["unlabelled"], base.terms["unlabelled"]) != differs


@pytest.mark.parametrize(("alpha", "iterations"), [(2.0, 10), (1.5, 2)])
def test_pseudo_labels_are_the_stored_refined_ones(alpha, iterations):
    algorithm = DARP(threshold=0.6, warm_up=0.0, alpha=alpha, iterations=iterations)
    state = algorithm.init(FACTS)
    kept = np.full((300, 4), 0.25)
    for step in range(8):
        batch = views(step)
        kept[batch.index.numpy()] = softmax(array(batch.weak))
        state = run(algorithm, batch, state).state
    close(state["predictions"], kept)
    state = algorithm.refresh(state, 10, 100)
    counts = 300 * np.array(COUNTS) / sum(COUNTS)
    refined = array(refine(torch.tensor(rivals.truncate(kept, counts, alpha)), torch.tensor(counts), iterations))
    close(state["refined"], refined, 1e-3)
    batch = views(20)
    rows = array(state["refined"])[batch.index.numpy()]
    algorithm = dataclasses.replace(algorithm, threshold=float(np.median(rows.max(1))))
    pseudo, used = rows.argmax(1), rows.max(1) > algorithm.threshold
    output = run(algorithm, batch, state)
    assert output.pseudo.tolist() == pseudo.tolist()
    assert output.mask.tolist() == used.tolist()
    assert 0 < used.sum() < len(used)
    kept[batch.index.numpy()] = softmax(array(batch.weak))
    close(output.state["predictions"], kept)  # the network's own, not refined ones

    def loss(strong):
        return float(np.mean(used * [-log_softmax(strong)[i, c] for i, c in enumerate(pseudo)]))

    close(output.terms["unlabelled"], loss(array(batch.strong)))
    close(gradients(algorithm, batch, state)["strong"], slope(loss, batch.strong))


@pytest.mark.parametrize(
    ("field", "value"),
    [("target", "guess"), ("target", "given"), ("target_prior", (1.0, 1.0)), ("alpha", 0.5), ("warm_up", 1.5)],
)
def test_settings_out_of_range_are_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        DARP(**{field: value})
