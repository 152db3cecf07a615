"""SimCLR's loss against what its paper writes out, pair by pair."""

import numpy as np
import torch

from cadr.algorithms.simclr import SimCLR, contrast
from tests.algorithms import toy


def by_pairs(projected, temperature):
    """ℓ(i, j) = −log exp(sim(i, j)/τ) / Σ_{k≠i} exp(sim(i, k)/τ), the mean over both orders of each pair."""
    views = [row / np.linalg.norm(row) for row in projected]
    half, losses = len(views) // 2, []
    for i in range(len(views)):
        j = i + half if i < half else i - half
        others = sum(np.exp(views[i] @ views[k] / temperature) for k in range(len(views)) if k != i)
        losses.append(-np.log(np.exp(views[i] @ views[j] / temperature) / others))
    return np.mean(losses)


def test_oracle():
    projected = torch.randn(10, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    value = contrast(projected, 0.3)
    rows = projected.detach().numpy()
    np.testing.assert_allclose(value.item(), by_pairs(rows, 0.3), rtol=1e-10)
    (gradient,) = torch.autograd.grad(value, projected)
    moved = np.zeros_like(rows)
    for place in np.ndindex(rows.shape):
        step = np.zeros_like(rows)
        step[place] = 1e-6
        moved[place] = (by_pairs(rows + step, 0.3) - by_pairs(rows - step, 0.3)) / 2e-6
    np.testing.assert_allclose(gradient.numpy(), moved, atol=1e-8)


def test_a_step_compares_the_second_head_s_outputs_and_knows_no_label():
    method, facts = SimCLR(temperature=0.3), toy.facts()
    state, views = method.init(facts), toy.batch(features=facts.num_classes + 4, algorithm=method)
    output = method.loss(lambda x: x, views, state)
    expected = by_pairs(views.strong[:, facts.num_classes :].double().numpy(), 0.3)
    np.testing.assert_allclose(output.terms["contrast"].item(), expected, rtol=1e-5)
    other = method.loss(lambda x: x, views._replace(labels=1 - views.labels.clamp(max=1)), state)
    assert output.terms["contrast"].equal(other.terms["contrast"])
    assert output.state is state
    assert (output.mask == 0).all()
