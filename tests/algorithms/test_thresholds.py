"""DASH, FlexMatch, FreeMatch and SoftMatch: thresholds and weights that move, against oracles, and reduced."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from cadr.algorithms import DASH, FixMatch, FlexMatch, FreeMatch, SoftMatch
from cadr.errors import ConfigError
from tests.algorithms.logits import FACTS, array, close, gradients, run, slope, views
from tests.oracles import losses, marginal, rivals
from tests.oracles.softmax import log_softmax, softmax

UNIFORM = np.full(4, 0.25)


def _unlabelled(strong, weak, used, targets=None):
    """Mean over all rows of weight times cross-entropy, one row after another."""
    pseudo = losses.pseudo_labels(weak)
    rows = [-log_softmax(strong)[i, c] for i, c in enumerate(pseudo)]
    if targets is not None:
        rows = list(rivals.soft_cross_entropy(strong, targets))
    return float(np.mean(np.asarray(used) * rows))


# SoftMatch


@pytest.mark.parametrize("n_sigma", [1.0, 2.0])
def test_softmatch(n_sigma):
    batch = views()
    batch = batch._replace(weak=batch.weak + torch.tensor([1.5, 0.5, 0.0, -1.0]))
    algorithm = SoftMatch(momentum=0.02, n_sigma=n_sigma)
    weak = array(batch.weak)
    pseudo = softmax(weak).argmax(1)
    prior = marginal.update_prior(UNIFORM, weak, 0.02)
    aligned = rivals.align(softmax(weak), UNIFORM, prior)
    confidence = aligned.max(1)
    mean = 0.02 * 0.25 + 0.98 * confidence.mean()
    variance = 0.02 * 1.0 + 0.98 * confidence.var(ddof=1)
    weights = rivals.softmatch_weights(confidence, mean, variance, n_sigma)
    output = run(algorithm, batch)
    close(output.mask, weights)
    assert np.ptp(weights) > 0.05
    close(output.state["mean"], mean)
    close(output.state["variance"], variance)
    assert output.pseudo.tolist() == pseudo.tolist()
    assert (pseudo != aligned.argmax(1)).any()  # alignment is for the weights alone

    def loss(strong):
        rows = [-log_softmax(strong)[i, c] for i, c in enumerate(pseudo)]
        return float(np.mean(weights * rows))

    close(output.terms["unlabelled"], loss(array(batch.strong)))
    found = gradients(algorithm, batch)
    close(found["strong"], slope(loss, batch.strong))
    assert not found["weak"].any()


def test_softmatch_with_infinite_variance_uses_every_row_as_it_is():
    """FixMatch without a threshold."""
    batch = views()
    for alignment in ("none", "uniform"):
        algorithm = SoftMatch(momentum=0.5, alignment=alignment)
        state = algorithm.init(FACTS) | {"variance": torch.tensor(1e30), "mean": torch.tensor(0.9)}
        ours = run(algorithm, batch, state)
        base = run(FixMatch(threshold=0.0), batch)
        assert torch.equal(ours.mask, base.mask)
        assert torch.equal(ours.terms["unlabelled"], base.terms["unlabelled"])


def test_softmatch_with_no_variance_is_a_threshold_at_the_mean():
    algorithm = SoftMatch(momentum=1.0, alignment="none")
    state = algorithm.init(FACTS) | {"variance": torch.tensor(0.0), "mean": torch.tensor(0.9)}
    ours, base = run(algorithm, views(), state), run(FixMatch(threshold=0.9), views())
    assert 0 < base.mask.sum() < 40
    assert torch.equal(ours.mask, base.mask)


def test_softmatch_learns_its_variance_from_single_rows():
    algorithm = SoftMatch(momentum=0.99)
    state, seen = algorithm.init(FACTS), []
    for seed in range(1000):
        output = run(algorithm, views(seed, unlabelled=1), state)
        assert output.terms["unlabelled"].isfinite()
        state = output.state
        seen.append(softmax(array(views(seed, unlabelled=1).weak)).max())
    close(state["mean"], np.mean(seen), 0.05)
    close(state["variance"].sqrt(), np.std(seen), 0.05)


# FlexMatch


@pytest.mark.parametrize("warm_up", [True, False])
def test_flexmatch_over_several_batches(warm_up):
    algorithm = FlexMatch(threshold=0.8, threshold_warm_up=warm_up)
    state, selected = algorithm.init(FACTS), [-1] * FACTS.num_unlabelled
    lowered = 0.0
    for seed in range(12):
        batch = views(seed)
        batch = batch._replace(weak=batch.weak + torch.tensor([1.5, 0.5, 0.0, -1.0]))
        limits = rivals.flexmatch_thresholds(selected, 4, 0.8, warm_up=warm_up)
        output = run(algorithm, batch, state)
        close(output.thresholds, limits)
        predicted = softmax(array(batch.weak))
        used = predicted.max(1) > limits[predicted.argmax(1)]
        assert output.mask.tolist() == used.tolist()
        close(output.terms["unlabelled"], _unlabelled(array(batch.strong), array(batch.weak), used))
        for i, row in zip(batch.index.tolist(), predicted, strict=True):
            if row.max() > 0.8:
                selected[i] = int(row.argmax())
        state = output.state
        assert state["selected"].tolist() == selected
        lowered = limits.max() - limits.min()
    assert lowered > 0.01


def test_flexmatch_with_classes_learnt_alike_is_fixmatch():
    algorithm, batch = FlexMatch(threshold=0.8), views()
    state = algorithm.init(FACTS) | {"selected": torch.arange(FACTS.num_unlabelled) % 4}
    ours, base = run(algorithm, batch, state), run(FixMatch(threshold=0.8), batch)
    torch.testing.assert_close(ours.thresholds, base.thresholds)
    assert torch.equal(ours.mask, base.mask)
    assert torch.equal(ours.terms["unlabelled"], base.terms["unlabelled"])


# FreeMatch


def _free(batch, momentum=0.6, lambda_e=0.5):
    weak = array(batch.weak)
    predicted = softmax(weak)
    prior = marginal.update_prior(UNIFORM, weak, momentum)
    confidence = momentum * 0.25 + (1 - momentum) * predicted.max(1).mean()
    histogram = momentum * UNIFORM + (1 - momentum) * np.bincount(predicted.argmax(1), minlength=4) / len(weak)
    limits = confidence * prior / prior.max()
    used = predicted.max(1) > limits[predicted.argmax(1)]

    def loss(strong):
        fair = rivals.fairness(strong, used, prior, histogram)
        return _unlabelled(strong, weak, used) + lambda_e * fair

    return limits, used, loss


def test_freematch():
    batch, algorithm = views(), FreeMatch(momentum=0.6, lambda_e=0.5)
    limits, used, loss = _free(batch)
    output = run(algorithm, batch)
    close(output.thresholds, limits)
    assert output.mask.tolist() == used.tolist()
    assert 0 < used.sum() < len(used)
    close(output.terms["unlabelled"] + output.terms["fairness"], loss(array(batch.strong)))
    found = gradients(algorithm, batch)
    close(found["strong"], slope(loss, batch.strong))
    assert not found["weak"].any()


def test_freematch_remembers():
    """Two steps are the two updates of its three averages."""
    algorithm = FreeMatch(momentum=0.6)
    state = algorithm.init(FACTS)
    expected = [np.array(0.25), UNIFORM, UNIFORM]
    for seed in (1, 2):
        predicted = softmax(array(views(seed).weak))
        found = np.bincount(predicted.argmax(1), minlength=4) / 40
        new = (predicted.max(1).mean(), found, predicted.mean(0))
        expected = [0.6 * old + 0.4 * value for old, value in zip(expected, new, strict=True)]
        state = run(algorithm, views(seed), state).state
    for name, value in zip(("confidence", "histogram", "prior"), expected, strict=True):
        close(state[name], value)


def test_freematch_with_a_fixed_threshold_and_no_fairness_is_fixmatch():
    batch, algorithm = views(), FreeMatch(momentum=1.0, lambda_e=0.0)
    state = algorithm.init(FACTS) | {"confidence": torch.tensor(0.8)}
    ours, base = run(algorithm, batch, state), run(FixMatch(threshold=0.8), batch)
    assert torch.equal(ours.mask, base.mask)
    assert torch.equal(ours.terms["unlabelled"], base.terms["unlabelled"])
    assert float(ours.terms["fairness"]) == 0.0


def test_fairness_without_a_used_row_is_zero_with_a_zero_gradient():
    batch, algorithm = views(), FreeMatch(momentum=1.0, lambda_e=1.0)
    state = algorithm.init(FACTS) | {"confidence": torch.tensor(1.0)}
    assert float(run(algorithm, batch, state).terms["fairness"]) == 0.0
    assert not gradients(algorithm, batch, state)["strong"].any()


# DASH


def test_dash_over_a_run():
    """Every row first; the last of the ten 1024ths measures; then the threshold rises in drops, to its end."""
    steps = FACTS.steps
    algorithm = DASH(decay=1.5, drop_every=4, rho_min=0.2)
    state, measured = algorithm.init(FACTS), 0.0
    seen = []
    for step in range(40):
        batch = views(step, step=step)
        weak, strong = array(batch.weak), array(batch.strong)
        rho = rivals.dash_rho(step, steps, measured, 1.5, 4, 10)
        own_loss = -np.log(softmax(weak).max(1))
        used = own_loss < max(rho, 0.2)
        targets = softmax(weak / 0.5) if rho > 0.2 else np.eye(4)[weak.argmax(1)]
        rows = rivals.soft_cross_entropy(strong, targets)
        if step == 9:
            measured = float(rows.mean())
        output = run(algorithm, batch, state)
        assert output.mask.tolist() == used.tolist()
        close(output.terms["unlabelled"], 0.9 * rows[used].mean())
        close(output.thresholds, np.full(4, math.exp(-max(rho, 0.2))))
        state = output.state
        seen.append(used.mean())
        if step in (5, 12, 39):

            def loss(logits, used=used, targets=targets):
                return 0.9 * float(rivals.soft_cross_entropy(logits, targets)[used].mean())

            found = gradients(algorithm, batch, run(algorithm, views(step - 1, step=step - 1), state).state | state)
            close(found["strong"], slope(loss, batch.strong), 1e-4)
            assert not found["weak"].any()
    assert seen[0] == 1.0
    assert rho < 0.2  # the end was reached, and soft labels became hard


@pytest.mark.parametrize("steps", [3, 60, 500, 5000])
def test_dash_measures_once_in_runs_of_any_length(steps):
    algorithm = DASH()
    state = algorithm.init(dataclasses.replace(FACTS, steps=steps))
    end = int(state["warm_up_ends"])
    assert 0 <= int(state["measured_from"]) < end == max(1, math.ceil(10 * steps / 1024))
    for step in range(min(end + 2, steps)):
        before = float(state["rho_start"])
        state = run(algorithm, views(step, step=step), state).state
        assert (float(state["rho_start"]) > before) == (int(state["measured_from"]) <= step < end)


def test_dash_at_its_end_is_fixmatch():
    batch = views(step=1000)
    algorithm = DASH(rho_min=-math.log(0.6), lambda_u=1.0)
    state = algorithm.init(FACTS) | {"rho_start": torch.tensor(1e-9)}
    ours, base = run(algorithm, batch, state), run(FixMatch(threshold=0.6), batch)
    assert torch.equal(ours.mask, base.mask)
    close(ours.terms["unlabelled"] * ours.mask.mean(), array(base.terms["unlabelled"]))


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [(DASH, "decay", 0.9), (DASH, "temperature", 0.0), (SoftMatch, "n_sigma", -1.0), (FreeMatch, "momentum", 2.0)],
)
def test_settings_out_of_range_are_refused(kind, field, value):
    with pytest.raises(ConfigError, match=field):
        kind(**{field: value})
