"""Muon against singular value decompositions in float64, and against a loop over kernels as one would read it."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from cadr.models import MODELS
from cadr.optim import SGD, Muon
from cadr.optim.flat_parameters import Flat
from cadr.optim.muon import Matrices, hidden_kernels, orthogonalise

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


def polynomial(values):
    """What five iterations make of singular values."""
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return values


def by_decomposition(matrix):
    """The update's matrix in float64, by its singular values."""
    left, values, right = np.linalg.svd(np.asarray(matrix, np.float64), full_matrices=False)
    return left * polynomial(values / np.linalg.norm(values)) @ right


def small():
    """Kernels wider than tall and taller than wide, two of a shape, norms, biases, groups."""
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 40, 3, bias=False),
        nn.Conv2d(40, 8, 1),
        nn.Conv2d(8, 8, 3, groups=2),
        nn.Flatten(),
        nn.Linear(8, 50),
        nn.Linear(50, 50),
        nn.Linear(50, 3),
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 7), (32, 288), (128, 1152)])
def test_singular_values_are_what_five_iterations_give(shape, device):
    generator = torch.Generator().manual_seed(sum(shape))
    matrices = torch.randn(3, *shape, generator=generator) * torch.tensor([1e-6, 1.0, 1e4]).view(3, 1, 1)
    for dtype, near in ((torch.float32, 1e-3), (torch.bfloat16, 0.1)):
        ours = orthogonalise(matrices.to(device), dtype).cpu().double().numpy()
        for given, made in zip(matrices.numpy(), ours, strict=True):
            expected = by_decomposition(given)
            assert np.linalg.norm(made - expected) <= near * np.linalg.norm(expected)
            assert 0.6 < np.linalg.svd(made, compute_uv=False).max() < 1.3


def test_a_matrix_of_zeros_stays_one():
    assert (orthogonalise(torch.zeros(2, 4, 6)) == 0).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_update_is_the_loop_over_kernels(layout, device):
    options = Muon(lr=0.1, sgd_momentum=0.8, weight_decay=0.1, muon_lr=0.3, muon_decay=0.2, muon_momentum=0.9)
    model = small().to(device).to(memory_format=layout)
    names = {"2.weight", "3.weight", "6.weight", "7.weight"}
    assert options.hidden(model) == names
    expected = {name: p.detach().double().cpu() for name, p in model.named_parameters()}
    momentum = {name: torch.zeros_like(value) for name, value in expected.items()}

    flat = Flat(model, options.hidden(model))
    weights, parameters = flat.adopt(model)
    gradient, velocity = torch.zeros_like(weights), torch.zeros_like(weights)
    update = options.begin(flat, weights, gradient, velocity)
    generator = torch.Generator().manual_seed(0)
    for factor in (1.0, 0.7, 0.4):
        gradients = {
            name: torch.randn(p.shape, generator=generator) for name, p in zip(flat.names, parameters, strict=True)
        }
        flat.collect(gradient, [gradients[name].to(device) for name in flat.names])
        update(torch.tensor(factor, dtype=torch.float64, device=device))
        for name, value in expected.items():
            g = gradients[name].double()
            if name in names:
                momentum[name] = 0.9 * momentum[name] + 0.1 * g
                ahead = (0.1 * g + 0.9 * momentum[name]).flatten(1)
                step = torch.from_numpy(by_decomposition(ahead)).view_as(g)
                scale = math.sqrt(max(1.0, ahead.shape[0] / ahead.shape[1]))
                expected[name] = value - 0.3 * factor * (0.2 * value + scale * step)
            else:
                g = g + 0.1 * value if value.ndim > 1 else g
                momentum[name] = 0.8 * momentum[name] + g
                expected[name] = value - 0.1 * factor * (g + 0.8 * momentum[name])
    near = 0.1 if device == "cuda" else 1e-3  # bf16 in the iterations there
    for name, p in zip(flat.names, parameters, strict=True):
        assert (p.detach().cpu().double() - expected[name]).norm() <= near * expected[name].norm(), name


def test_without_hidden_kernels_it_is_sgd():
    results = []
    for options in (SGD(lr=0.1), Muon(lr=0.1)):
        torch.manual_seed(0)
        model = nn.Linear(4, 3)
        flat = Flat(model, options.hidden(model))
        weights, _ = flat.adopt(model)
        options.begin(flat, weights, torch.ones_like(weights), torch.zeros_like(weights))(torch.tensor(1.0))
        results.append(weights)
    assert results[0].equal(results[1])


@pytest.mark.parametrize("name", MODELS)
def test_hidden_kernels_of_every_network_are_all_but_the_outer_ones(name):
    model = MODELS[name]().build(5, (4,) if name == "mlp" else (3, 32, 32))
    kernels = [key for key, p in model.named_parameters() if p.ndim > 1]
    outer = kernels[-1:] if name == "mlp" else [kernels[0], kernels[-1]]
    assert hidden_kernels(model) == set(kernels) - set(outer)


def test_shared_frozen_and_foreign_kernels_are_not_hidden():
    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(9, 4)
            self.tied, self.frozen, self.free = nn.Linear(4, 9, bias=False), nn.Linear(4, 4), nn.Linear(4, 4)
            self.again, self.head = self.free, nn.Linear(4, 2)
            self.tied.weight = self.words.weight
            self.frozen.requires_grad_(False)

    assert hidden_kernels(Text()) == {"free.weight"}


def test_few_products_take_all_kernels_of_a_wide_residual_network():
    model = MODELS["wrn-28-2"]().build(10, (3, 32, 32))
    shapes = Matrices(Flat(model, hidden_kernels(model)), torch.device("cpu")).shapes
    assert shapes == [(8, 128, 1152), (9, 64, 576), (10, 32, 288)]


def test_zeros_around_a_matrix_change_nothing():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(20, 6), nn.Linear(70, 30), nn.Linear(30, 2))
    flat = Flat(model, hidden_kernels(model))
    update = torch.randn(flat.hidden)
    made = Matrices(flat, torch.device("cpu")).orthogonalised(update)
    for place in flat.hidden_places:
        inside = slice(place.offset, place.offset + place.shape.numel())
        alone = orthogonalise(update[inside].view(1, *place.shape))
        torch.testing.assert_close(made[inside].view_as(alone), alone, rtol=1e-4, atol=1e-5)


def test_a_copy_of_the_flat_tensors_goes_on_as_they_do():
    options, model = Muon(), small()
    flat = Flat(model, options.hidden(model))
    weights, _ = flat.adopt(model)
    velocity, generator = torch.zeros_like(weights), torch.Generator().manual_seed(0)
    options.begin(flat, weights, torch.randn(flat.size, generator=generator), velocity)(torch.tensor(1.0))
    others = copy.deepcopy((weights, velocity))
    gradient = torch.randn(flat.size, generator=generator)
    options.begin(flat, weights, gradient.clone(), velocity)(torch.tensor(0.5))
    options.begin(flat, others[0], gradient.clone(), others[1])(torch.tensor(0.5))
    assert weights.equal(others[0])
    assert velocity.equal(others[1])
