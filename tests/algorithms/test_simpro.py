"""SimPro: adjusted pseudo-labels and losses against the oracle, its estimated distributions, and its reduction."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from cadr.algorithms import FixMatch, SimPro
from cadr.errors import ConfigError
from tests.algorithms.logits import COUNTS, FACTS, array, close, gradients, run, slope, views
from tests.oracles import rivals
from tests.oracles.softmax import cross_entropy, softmax

LABELLED = np.array(COUNTS) / sum(COUNTS)


def _two_views(seed, step=0):
    """Two strong views follow one another, and a strong view of the labelled rows their weak one."""
    batch, more = views(seed, step=step), views(seed + 100)
    return batch._replace(
        labelled=torch.cat((batch.labelled, more.labelled)), strong=torch.cat((batch.strong, more.strong))
    )


@pytest.mark.parametrize(("tau", "kept"), [(2.0, 0.9), (1.0, 0.7)])
def test_values_gradients_and_distributions_over_several_periods(tau, kept):
    # of 1,024 steps: every fourth
    algorithm = SimPro(tau=tau, threshold=0.7, updates=256, update_momentum=kept)
    state = algorithm.init(FACTS)
    unlabelled, mixed = np.full(4, 0.25), LABELLED
    soft, hard = np.zeros(4), np.zeros(4)
    for step in range(10):
        batch = _two_views(step, step)
        predicted = softmax(array(batch.weak) + tau * np.log(unlabelled))
        used = predicted.max(1) > 0.7
        shift = tau * np.log(mixed)
        once = sum(COUNTS) / 300 * 40 / 12

        labels = batch.labels.numpy()

        def supervised(logits, shift=shift, once=once, labels=labels):
            return once * cross_entropy(logits + shift, np.concatenate([labels, labels]))

        def consistency(logits, shift=shift, targets=predicted, used=used):
            rows = rivals.soft_cross_entropy(logits + shift, np.concatenate([targets, targets]))
            return float(np.mean(np.concatenate([used, used]) * rows))

        output = run(algorithm, batch, state)
        assert output.mask.tolist() == used.tolist()
        close(output.terms["supervised"], supervised(array(batch.labelled)))
        close(output.terms["unlabelled"], consistency(array(batch.strong)))
        if step in (0, 9):
            found = gradients(algorithm, batch, state)
            close(found["labelled"], slope(supervised, batch.labelled))
            close(found["strong"], slope(consistency, batch.strong))
            assert not found["weak"].any()
        soft += predicted[used].sum(0)
        hard += np.bincount(labels, minlength=4)
        if step % 4 == 3:
            unlabelled = kept * unlabelled + (1 - kept) * soft / (soft.sum() + 1)
            mixed = kept * mixed + (1 - kept) * (soft + hard) / (soft + hard).sum()
            soft, hard = np.zeros(4), np.zeros(4)
        state = output.state
        close(state["unlabelled_prior"], unlabelled)
        close(state["mixed_prior"], mixed)
    assert np.abs(unlabelled - 0.25).max() > 1e-3


def test_without_adjustment_it_is_fixmatch_with_soft_labels():
    batch = views()
    # as many labels per row of the stream as there are labelled rows per unlabelled one in a batch
    facts = dataclasses.replace(FACTS, labelled_counts=torch.tensor([50.0, 20.0, 18.0, 2.0]))
    algorithm, plain = SimPro(tau=0.0, threshold=0.6, strong_views=1), FixMatch(threshold=0.6, pseudo_labels="soft")
    ours, base = (a.loss(lambda x: x, batch, a.init(facts)) for a in (algorithm, plain))
    assert torch.equal(ours.mask, base.mask)
    for name in base.terms:
        torch.testing.assert_close(ours.terms[name], base.terms[name])


@pytest.mark.parametrize(("rows", "weight"), [(300, 80 / 300 * 40 / 12), (1000, 80 / 1000 * 40 / 12), (50_000, 0.23)])
def test_a_few_labels_among_many_rows_weigh_no_less_than_in_the_published_settings(rows, weight):
    batch, algorithm = views(), SimPro()
    output = run(algorithm, batch, algorithm.init(dataclasses.replace(FACTS, num_unlabelled=rows)))
    expected = weight * cross_entropy(array(batch.labelled) + 2.0 * np.log(LABELLED), batch.labels.numpy())
    close(output.terms["supervised"], expected)


def test_a_class_nobody_predicts_stays_finite():
    algorithm = SimPro()
    state = algorithm.init(FACTS)
    state["unlabelled_prior"] = torch.tensor([0.5, 0.5, 0.0, 0.0])
    state["mixed_prior"] = torch.tensor([0.5, 0.5, 0.0, 0.0])
    output = run(algorithm, views(), state)
    assert all(term.isfinite() for term in output.terms.values())


@pytest.mark.parametrize(
    ("field", "value"), [("threshold", 2.0), ("updates", 0), ("update_momentum", 1.1), ("labelled_views", 0)]
)
def test_settings_out_of_range_are_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        SimPro(**{field: value})
