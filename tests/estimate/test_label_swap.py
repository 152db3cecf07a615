"""Which names fit which outputs: against a loop over examples, by brute force, and on clouds of points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from cadr.estimate.label_swap import exchanged, fit_of_names


def plain_fit(seen, labels, others, predicted):
    """The formula, example by example."""
    (n, _), classes = others.shape, predicted.shape[1]
    k = max(5, n // (50 * classes))
    centre, scale = others.mean(0), others.std(0)
    fit = np.zeros((classes, classes))
    for x, y in zip(seen, labels, strict=True):
        a = (x - centre) / scale
        cosines = []
        for other in others:
            b = (other - centre) / scale
            cosines.append(a @ b / np.sqrt((a @ a) * (b @ b)))
        votes = predicted[np.argsort(cosines)[-k:]].mean(0)
        fit[y] += np.log((votes + 0.01) / (predicted.mean(0) + 0.01))
    return fit


@pytest.mark.parametrize("n", [40, 1200])
def test_the_fit_is_that_of_the_formula(n):
    generator = np.random.default_rng(n)
    labels, predicted = generator.integers(3, size=7), generator.dirichlet(np.ones(3), size=n)
    layers = [
        (generator.normal(size=(7, d)), generator.normal(size=(n, d)) * np.arange(1, d + 1) ** 2 + 5) for d in (4, 6, 9)
    ]
    seen, others = ([torch.from_numpy(part) for part in parts] for parts in zip(*layers, strict=True))
    ours = fit_of_names(seen, torch.from_numpy(labels), others, torch.from_numpy(predicted))
    plain = [plain_fit(few, labels, many, predicted) for few, many in layers]
    np.testing.assert_allclose(ours.numpy(), (plain[0] + plain[1] + plain[2]) / 3, atol=1e-9)


def test_many_labels_are_added_up_whatever_is_held_at_a_time(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    seen, others = (torch.randn(n, 3, generator=generator) for n in (50, 200))
    labels, predicted = torch.arange(50) % 4, torch.rand(200, 4, generator=generator).softmax(1)
    whole = fit_of_names([seen], labels, [others], predicted)
    monkeypatch.setattr("cadr.estimate.label_swap._CHUNK", 7)
    torch.testing.assert_close(fit_of_names([seen], labels, [others], predicted), whole)


def test_a_feature_that_never_changes_says_nothing():
    generator = torch.Generator().manual_seed(0)
    seen, others = (torch.randn(n, 3, generator=generator) for n in (5, 100))
    labels, predicted = torch.arange(5) % 2, torch.rand(100, 2, generator=generator).softmax(1)
    more, others_more = (torch.cat((x, torch.ones(len(x), 1)), 1) for x in (seen, others))
    constant = fit_of_names([more], labels, [others_more], predicted)
    torch.testing.assert_close(constant, fit_of_names([seen], labels, [others], predicted))


def clouds(names):
    """Four clouds; the model calls cloud c by names[c]. The last has one label, the first has twenty."""
    generator = torch.Generator().manual_seed(1)
    centres = 3 * torch.randn(4, 6, generator=generator)
    truth = torch.arange(400) % 4
    others = centres[truth] + torch.randn(400, 6, generator=generator)
    labels = torch.tensor([0] * 20 + [1] * 5 + [2] * 2 + [3])
    seen = centres[labels] + torch.randn(len(labels), 6, generator=generator)
    predicted = 0.9 * torch.nn.functional.one_hot(torch.tensor(names)[truth], 4) + 0.025
    return fit_of_names([seen], labels, [others], predicted), len(labels)


@pytest.mark.parametrize("names", [(0, 1, 2, 3), (0, 1, 3, 2), (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (0, 3, 2, 1)])
def test_names_go_back_to_their_clouds(names):
    """Name y belongs to cloud y, which the model calls names[y]."""
    outputs, pairs = exchanged(*clouds(names))
    assert outputs.tolist() == list(names)
    assert bool(pairs) == (names != (0, 1, 2, 3))


def test_three_names_go_round_where_no_exchange_of_two_gains():
    fit = 4.0 * torch.eye(4, dtype=torch.float64)
    fit[0, 1] = fit[1, 2] = fit[2, 0] = 6.0  # gains 6 in all; any two of them lose 2
    outputs, pairs = exchanged(fit, labels=4)
    assert outputs.tolist() == [1, 2, 0, 3]
    assert pairs == [(0, 1), (1, 2)]
    fit[0, 1] = fit[1, 2] = fit[2, 0] = 4.4  # gains 1.2, and should gain 1.5
    assert exchanged(fit, labels=4)[1] == []


def test_the_best_cycle_comes_first():
    fit = 3.0 * torch.eye(5, dtype=torch.float64)
    fit[0, 1] = fit[1, 0] = 5.0
    fit[2, 3] = fit[3, 4] = fit[4, 2] = 9.0
    assert exchanged(fit, labels=5)[1] == [(2, 3), (3, 4), (0, 1)]


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_exchanges_lead_to_the_best_names(noise):
    """As trying all permutations does, where every name that moves costs a half."""
    generator = torch.Generator().manual_seed(2)
    for _ in range(50):
        right = torch.randperm(5, generator=generator)
        fit = torch.randn(5, 5, generator=generator, dtype=torch.float64)
        fit[torch.arange(5), right] += 20.0 if noise == 0.0 else noise
        sums = {
            order: sum(float(fit[y, c]) - 0.5 * (y != c) for y, c in enumerate(order))
            for order in itertools.permutations(range(5))
        }
        fit_known = fit.clone()
        outputs, pairs = exchanged(fit_known, labels=-1000)
        assert tuple(outputs.tolist()) == max(sums, key=sums.__getitem__)
        carried_out = torch.arange(5)
        for one, other in pairs:
            carried_out[[one, other]] = carried_out[[other, one]]
        assert carried_out.tolist() == outputs.tolist()


def test_a_model_that_knows_no_names_keeps_them():
    fit = torch.zeros(3, 3, dtype=torch.float64)
    fit[0, 1] = fit[1, 0] = 5.0  # so ten in all when names are exchanged, and log 2 a label are 9.7 or 10.4
    assert exchanged(fit, labels=14)[1] == [(0, 1)]
    outputs, pairs = exchanged(fit, labels=15)
    assert (outputs.tolist(), pairs) == ([0, 1, 2], [])


@pytest.mark.parametrize(("gained", "pairs"), [(0.0, []), (0.9, []), (1.1, [(0, 2)])])
def test_an_exchange_must_gain_more_than_one(gained, pairs):
    fit = 9.0 * torch.eye(3, dtype=torch.float64)
    fit[0, 2] = 18.0 + gained
    assert exchanged(fit, labels=3)[1] == pairs


def test_what_is_not_a_number_is_no_evidence():
    outputs, pairs = exchanged(torch.full((3, 3), torch.nan), labels=3)
    assert (outputs.tolist(), pairs) == ([0, 1, 2], [])
