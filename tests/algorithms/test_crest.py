"""CReST: which predictions join the labels, worked out by hand; what one generation is; how far it is aligned."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from cadr.algorithms import CReST, CReSTPlus, Facts, FixMatch
from cadr.algorithms.crest import sampling_rates
from cadr.errors import ConfigError
from tests.algorithms import toy


def _facts(*counts, generation=0):
    total = torch.tensor(counts).float()
    return Facts(len(counts), total, 1000, 1000, labelled_in_stream=True, steps=10, generation=generation)


def test_rates_by_hand():
    """8, 4 and 1 labels, α = 3: the cube roots of 1/8, 4/8 and 8/8, the rarest class getting all."""
    assert sampling_rates(torch.tensor([8.0, 4.0, 1.0]), 3.0).tolist() == pytest.approx([0.5, 0.5 ** (1 / 3), 1.0])
    assert sampling_rates(torch.tensor([1.0, 8.0, 4.0]), 3.0).tolist() == pytest.approx([1.0, 0.5, 0.5 ** (1 / 3)])
    assert sampling_rates(torch.tensor([8.0, 4.0, 1.0]), 1.0).tolist() == pytest.approx([0.125, 0.5, 1.0])
    assert sampling_rates(torch.tensor([5.0, 5.0]), 3.0).tolist() == [1.0, 1.0]  # balanced labels: everything joins


def _predicted(*rows):
    """One row per (class, confidence), the rest spread evenly."""
    out = torch.zeros(len(rows), 3)
    for i, (c, confidence) in enumerate(rows):
        out[i] = (1 - confidence) / 2
        out[i, c] = confidence
    return out


def test_the_selected_set_by_hand():
    """Rates 0.5, 0.79 and 1: of five 0s the two surest, of two 1s the one surer, every 2 however unsure."""
    predicted = _predicted((0, 0.9), (0, 0.5), (2, 0.4), (0, 0.99), (1, 0.6), (0, 0.7), (1, 0.8), (0, 0.95), (2, 0.9))
    adopted = CReST().enlarge(predicted, _facts(8, 4, 1))
    assert adopted.tolist() == [-1, -1, 2, 0, -1, -1, 1, 0, 2]
    fewer = CReST(alpha=1.0).enlarge(predicted, _facts(8, 4, 1))  # rates 1/8, 1/2 and 1
    assert fewer.tolist() == [-1, -1, 2, -1, -1, -1, 1, -1, 2]


def test_equal_confidence_is_settled_by_position_and_rounding_is_down():
    predicted = _predicted((0, 0.9), (0, 0.9), (0, 0.9), (1, 0.9))
    assert CReST().enlarge(predicted, _facts(8, 4, 1)).tolist() == [0, -1, -1, -1]


def test_a_class_nobody_predicts_adopts_nothing():
    assert CReST().enlarge(_predicted((0, 0.9), (0, 0.8)), _facts(8, 4, 1)).tolist() == [0, -1]


@pytest.mark.parametrize("seed", range(2))
def test_a_generation_of_crest_is_fixmatch(seed):
    """Within a generation, and with a single one throughout."""
    views, results = toy.batch(seed=seed), []
    for algorithm in (CReST(threshold=0.6, generations=1), FixMatch(threshold=0.6)):
        model = toy.mlp(5, 4, seed=seed)
        output = algorithm.loss(model, views, algorithm.init(toy.facts()))
        results.append((output.mask, *torch.autograd.grad(toy.objective(output), list(model.parameters()))))
    torch.testing.assert_close(*results, rtol=0, atol=0)


def test_the_target_flattens_from_generation_to_generation():
    algorithm = CReSTPlus(generations=3, t_min=0.5)
    for generation, t in ((0, 1.0), (1, 0.75), (2, 0.5)):
        expected = torch.tensor([16.0**t, 1.0])
        target = algorithm.init(_facts(16, 1, generation=generation))["target"]
        torch.testing.assert_close(target, expected / expected.sum())


def test_crest_plus_aligns_as_fixmatch_does_with_the_same_target():
    views = toy.batch()
    plus, aligned = CReSTPlus(threshold=0.3), FixMatch(threshold=0.3, alignment="labelled")
    one, other, plain = (
        a.loss(toy.mlp(5, 4), views, a.init(toy.facts())) for a in (plus, aligned, FixMatch(threshold=0.3))
    )
    assert torch.equal(one.pseudo, other.pseudo)
    assert torch.equal(one.mask, other.mask)
    assert not torch.equal(one.pseudo, plain.pseudo)
    flat = dataclasses.replace(plus, generations=1, t_min=0.0)
    assert flat.init(toy.facts())["target"].tolist() != [0.25] * 4  # the only generation is the first


@pytest.mark.parametrize(
    ("kind", "field", "value"), [(CReST, "generations", 0), (CReST, "alpha", 0.0), (CReSTPlus, "t_min", 2.0)]
)
def test_settings_out_of_range_are_refused(kind, field, value):
    with pytest.raises(ConfigError, match=field):
        kind(**{field: value})
