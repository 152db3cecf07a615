"""Re-weighting, re-sampling and logit adjustment: against oracles, on FixMatch and on CADR, and reduced."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from cadr.algorithms import (
    CADR,
    FixMatch,
    LogitAdjustedCADR,
    LogitAdjustment,
    ResampledCADR,
    Resampling,
    ReweightedCADR,
    Reweighting,
)
from cadr.errors import ConfigError
from tests.algorithms.logits import COUNTS, FACTS, array, close, gradients, run, slope, views
from tests.oracles import rivals
from tests.oracles.softmax import cross_entropy

BATCH = views()
LABELS = BATCH.labels.numpy()
PAIRS = [(Reweighting, FixMatch), (ReweightedCADR, CADR), (LogitAdjustment, FixMatch), (LogitAdjustedCADR, CADR)]


@pytest.mark.parametrize("kind", [Reweighting, ReweightedCADR])
@pytest.mark.parametrize(("weighting", "beta"), [("inverse", None), ("effective", 0.9999), ("effective", 0.9)])
def test_reweighting(kind, weighting, beta):
    algorithm = kind(threshold=0.6, weighting=weighting, effective_beta=beta or 0.5)
    weights = rivals.class_weights(COUNTS, beta)

    def loss(logits):
        return rivals.weighted_cross_entropy(logits, LABELS, weights)

    close(run(algorithm, BATCH).terms["supervised"], loss(array(BATCH.labelled)))
    close(gradients(algorithm, BATCH)["labelled"], slope(loss, BATCH.labelled))


def test_effective_numbers_of_few_labels_are_their_counts():
    close(rivals.class_weights(COUNTS, None), rivals.class_weights(COUNTS, 0.9999), 2e-2)
    assert np.abs(rivals.class_weights(COUNTS, None) - rivals.class_weights(COUNTS, 0.9)).max() > 0.1


@pytest.mark.parametrize("kind", [LogitAdjustment, LogitAdjustedCADR])
@pytest.mark.parametrize("tau", [1.0, 2.5])
def test_logit_adjustment(kind, tau):
    algorithm = kind(threshold=0.6, tau=tau)
    shift = tau * np.log(np.array(COUNTS) / sum(COUNTS))

    def loss(logits):
        return cross_entropy(logits + shift, LABELS)

    close(run(algorithm, BATCH).terms["supervised"], loss(array(BATCH.labelled)))
    close(gradients(algorithm, BATCH)["labelled"], slope(loss, BATCH.labelled))


@pytest.mark.parametrize(("modified", "plain"), PAIRS)
def test_a_modifier_changes_the_supervised_term_alone(modified, plain):
    ours, base = run(modified(threshold=0.6), BATCH), run(plain(threshold=0.6), BATCH)
    assert ours.terms.keys() == base.terms.keys()
    for name in base.terms:
        assert torch.equal(ours.terms[name], base.terms[name]) == (name != "supervised")
    assert torch.equal(ours.pseudo, base.pseudo)
    assert torch.equal(ours.mask, base.mask)


def _same(one, other, facts=FACTS):
    ours, base = (a.loss(lambda x: x, BATCH, a.init(facts)) for a in (one, other))
    for name in base.terms:
        torch.testing.assert_close(ours.terms[name], base.terms[name], rtol=1e-6, atol=1e-7)


def test_reductions():
    equal = dataclasses.replace(FACTS, labelled_counts=torch.full((4,), 20.0))
    _same(LogitAdjustment(tau=0.0), FixMatch())
    _same(LogitAdjustedCADR(tau=0.0), CADR())
    _same(LogitAdjustment(tau=3.0), FixMatch(), equal)
    _same(Reweighting(weighting="effective", effective_beta=0.0), FixMatch())
    _same(ReweightedCADR(), CADR(), equal)
    _same(Resampling(), FixMatch())  # the losses are the same; which rows are drawn is not


@pytest.mark.parametrize("kind", [Resampling, ResampledCADR])
def test_resampling_asks_the_training_step_for_balanced_batches(kind):
    assert kind().balanced_labels
    assert not kind(balanced_labels=False).balanced_labels
    assert not FixMatch().balanced_labels


@pytest.mark.parametrize("kind", [ReweightedCADR, ResampledCADR, LogitAdjustedCADR])
def test_rows_that_are_weighted_already_are_not_rebalanced_as_well(kind):
    with pytest.raises(ConfigError, match="propensity"):
        kind(propensity="class")


@pytest.mark.parametrize(("field", "value"), [("weighting", "square"), ("effective_beta", 1.0)])
def test_settings_out_of_range_are_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        Reweighting(**{field: value})
