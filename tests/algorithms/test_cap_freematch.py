"""CAP on top of FreeMatch against the oracles of both, with a target, and reduced to each of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cadr.algorithms import CAP, CAPFreeMatch, FreeMatch, ResampledCAPFreeMatch
from tests.algorithms.logits import FACTS, array, close, gradients, run, slope, views
from tests.oracles import gradients as by_hand
from tests.oracles import losses, marginal, rivals
from tests.oracles.softmax import softmax

KINDS = (CAPFreeMatch, ResampledCAPFreeMatch)
PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
TARGET = (0.1, 0.2, 0.3, 0.4)


def _state(algorithm):
    return algorithm.init(FACTS) | {"prior": torch.tensor(PRIOR).float()}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_cap_on_labelled_and_freematch_on_unlabelled_rows(kind):
    batch, algorithm = views(), kind(momentum=0.1, lambda_e=0.5)
    labelled, weak, strong = (array(part) for part in (batch.labelled, batch.weak, batch.strong))
    labels = batch.labels.numpy()
    predicted = softmax(weak)
    prior = marginal.update_prior(PRIOR, weak, 0.1)
    histogram = 0.1 / 4 + 0.9 * np.bincount(predicted.argmax(1), minlength=4) / len(weak)
    limits = (0.1 / 4 + 0.9 * predicted.max(1).mean()) * prior / prior.max()
    used = predicted.max(1) > limits[predicted.argmax(1)]
    assert 0 < used.sum() < len(used)

    def unlabelled(strong):
        fair = 0.5 * rivals.fairness(strong, used, prior, histogram)
        return losses.consistency(strong, predicted.argmax(1), used) + fair

    output = run(algorithm, batch, _state(algorithm))
    close(output.thresholds, limits)
    assert output.mask.tolist() == used.tolist()
    terms = output.terms
    expected = losses.cap(labelled, labels, weak, PRIOR, "straight_through")
    close(terms["supervised"] + terms["propensity"], expected)
    close(terms["unlabelled"] + terms["fairness"], unlabelled(strong))

    found = gradients(algorithm, batch, _state(algorithm))
    by_labelled, by_weak = by_hand.cap(labelled, labels, weak, PRIOR, "straight_through")
    close(found["labelled"], by_labelled)
    close(found["weak"], by_weak)
    close(found["strong"], slope(unlabelled, batch.strong))


def test_thresholds_follow_shares_relative_to_the_target():
    """A class as rare as it should be has as high a threshold as any."""
    algorithm = CAPFreeMatch(momentum=1.0, target_prior=TARGET)
    state = _state(algorithm) | {"confidence": torch.tensor(0.8)}
    relative = PRIOR / np.array(TARGET)
    close(run(algorithm, views(), state).thresholds, 0.8 * relative / relative.max())
    close(run(algorithm, views(), state | {"prior": torch.tensor(TARGET)}).thresholds, np.full(4, 0.8))


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_fixed_threshold_and_no_fairness_it_is_cap(kind):
    batch, algorithm = views(), kind(momentum=1.0, lambda_e=0.0)
    ours = run(algorithm, batch, algorithm.init(FACTS) | {"confidence": torch.tensor(0.8)})
    base = run(CAP(threshold=0.8, momentum=1.0), batch)
    assert torch.equal(ours.mask, base.mask)
    for name in base.terms:
        assert torch.equal(ours.terms[name], base.terms[name])
    assert float(ours.terms["fairness"]) == 0.0


def test_without_its_propensity_term_it_is_freematch():
    """Terms, thresholds and averages alike, step after step."""
    ours, base = CAPFreeMatch(momentum=0.9), FreeMatch(momentum=0.9)
    states = ours.init(FACTS), base.init(FACTS)
    for seed in range(3):
        outputs = run(ours, views(seed), states[0]), run(base, views(seed), states[1])
        states = outputs[0].state, outputs[1].state
        assert outputs[0].terms.keys() - outputs[1].terms.keys() == {"propensity"}
        for name in outputs[1].terms:
            assert torch.equal(outputs[0].terms[name], outputs[1].terms[name])
        for name in states[1]:
            assert torch.equal(states[0][name], states[1][name])


def test_re_sampled_it_asks_for_balanced_batches():
    assert ResampledCAPFreeMatch().balanced_labels
    assert not CAPFreeMatch().balanced_labels


def test_it_averages_as_cap_does():
    assert CAPFreeMatch().momentum == ResampledCAPFreeMatch().momentum == CAP().momentum != FreeMatch().momentum
