"""Labels that what surrounds them contradicts: against a loop over examples, and on clouds with wrong labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cadr.estimate.label_swap import doubtful


def plain(layers, labels, predicted):
    """The rule, example by example."""
    shares = predicted.mean(0)
    found, around = [], []
    for i, label in enumerate(labels):
        votes = []
        for seen, others in layers:
            k = max(10, len(others) // (50 * predicted.shape[1]))
            one, rest = ((x - others.mean(0)) / others.std(0) for x in (seen[i], others))
            cosines = [one @ b / np.linalg.norm(one) / np.linalg.norm(b) for b in rest]
            votes.append(predicted[np.argsort(cosines)[-k:]].mean(0))
        names = np.mean(votes, axis=0)
        around.append(names)
        relative = (names + 0.01) / (shares + 0.01)
        found.append(names.argmax() != label and relative.argmax() != label)
    return np.array(found), np.array(around)


@pytest.mark.parametrize("n", [40, 1800])
def test_the_rule_is_followed(n):
    generator = np.random.default_rng(n)
    labels, predicted = generator.integers(3, size=25), generator.dirichlet([0.1, 0.2, 0.4], size=n)
    layers = [(generator.normal(size=(25, d)), 5 + 3 * generator.normal(size=(n, d))) for d in (4, 6)]
    seen, others = ([torch.from_numpy(part) for part in parts] for parts in zip(*layers, strict=True))
    found, around = doubtful(seen, torch.from_numpy(labels), others, torch.from_numpy(predicted))
    expected, names = plain(layers, labels, predicted)
    np.testing.assert_allclose(around.numpy(), names, atol=1e-12)
    assert found.tolist() == expected.tolist()
    assert 0 < expected.sum() < 25


def test_wrong_labels_are_doubted_and_right_ones_of_a_rare_class_are_not():
    """Of three clouds the last is rare, and half of it is taken for the first, which is everywhere."""
    generator = torch.Generator().manual_seed(0)
    centres = 4 * torch.eye(3, 6)
    truth = torch.tensor([0] * 500 + [1] * 300 + [2] * 60)
    others = centres[truth] + torch.randn(len(truth), 6, generator=generator)
    predicted = torch.nn.functional.one_hot(truth, 3).float()
    predicted[truth == 2] = torch.tensor([0.55, 0.0, 0.45])
    labels = torch.arange(60) % 3
    seen = centres[labels] + 0.5 * torch.randn(60, 6, generator=generator)
    told = labels.clone()
    told[:9] = (labels[:9] + 1) % 3
    found, _ = doubtful([seen], told, [others], predicted)
    wrong = torch.arange(60) < 9
    assert (found & ~wrong).sum() == 0
    assert found[wrong & (labels != 2)].all()
