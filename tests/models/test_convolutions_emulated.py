"""The convolutions that need no warpgroups, and the gradients of their weights, played on a CPU."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cadr import nvrtc
from cadr.models.fused import convolutions, weight_gradients
from cadr.models.fused.source import KERNELS, TABLE_ROWS, Source
from tests import emulated
from tests.models.test_fused import by_taps

pytestmark = pytest.mark.skipif(emulated.COMPILER is None, reason="needs g++")
SIDE, CHANNELS, SLOPE = 32, 16, 0.1
CONVOLUTIONS = ("PLAIN,false,false", "ACTIVATED,false,true", "IMAGE,false,false", "GRADIENT,true,true")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    conv = emulated.Emulated(
        tmp_path_factory.mktemp("conv"),
        (KERNELS / "common.cuh", KERNELS / "conv.cu"),
        [f"conv<{CHANNELS},{CHANNELS},{SIDE},16,{how}>" for how in CONVOLUTIONS],
    )
    gradients = emulated.Emulated(
        tmp_path_factory.mktemp("gradients"),
        weight_gradients._SOURCES,
        ["sum_partials", *(f"weight_gradient<{CHANNELS},{CHANNELS},{SIDE},8,{how}>" for how in ("PLAIN", "IMAGE"))],
    )
    return {each.sources: each for each in (conv, gradients)}


@pytest.fixture(autouse=True)
def on_a_cpu(played, monkeypatch):
    monkeypatch.setattr(nvrtc, "kernel", lambda sources, *how, **more: played[sources].kernel(sources, *how, **more))
    for module in (convolutions, weight_gradients):
        monkeypatch.setattr(module, "multiprocessors", lambda device: 1)


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape))).bfloat16()


def weights():
    return drawn(9, CHANNELS, CHANNELS, seed=1) / 16


def convolved(x):
    return torch.from_numpy(by_taps(x.double().numpy(), weights().double().numpy()))


def same(ours, exact, within=5e-3):
    assert torch.linalg.vector_norm(ours.double() - exact) < within * torch.linalg.vector_norm(exact)


def table_of(seed):
    table = torch.randn(TABLE_ROWS, CHANNELS, generator=torch.Generator().manual_seed(seed))
    table[3] = table[3].abs() + 0.5
    return table


@pytest.mark.parametrize("how", ["PLAIN", "ACTIVATED", "IMAGE"])
def test_the_way_ahead(how):
    """With a residual where it is activated; two images, so that the two groups of warps take turns twice."""
    x, norm = drawn(2, SIDE, SIDE, 3 if how == "IMAGE" else CHANNELS), nn.BatchNorm2d(CHANNELS, momentum=0.1)
    residual = drawn(2, SIDE, SIDE, CHANNELS, seed=5) if how == "ACTIVATED" else None
    table = table_of(2)
    source = Source(how, x, table if how == "ACTIVATED" else None)
    output, found, _ = convolutions.conv(source, weights(), norm, residual=residual)
    read = x.double()
    if how == "ACTIVATED":
        read = F.leaky_relu(table[0] * x.double() + table[1], SLOPE)
        same(source.rebuilt, read)
        read = source.rebuilt.double()
    elif how == "IMAGE":
        read = F.pad(read, (0, CHANNELS - 3))
    same(output, convolved(read) + (0 if residual is None else residual.double()))
    rows = output.double().flatten(0, 2)
    same(found[2], rows.mean(0), 1e-4)
    same(found[3], (rows.var(0, correction=0) + norm.eps).rsqrt(), 1e-4)
    same(norm.running_var, 0.9 + 0.1 * rows.var(0), 1e-4)


def test_the_way_back():
    g, above, z, residual = (drawn(2, SIDE, SIDE, CHANNELS, seed=seed) for seed in range(4))
    into, table, norm = table_of(3), table_of(4), nn.BatchNorm2d(CHANNELS)
    before = table.double()
    source = Source("GRADIENT", g, into, before=above)
    output, completed, gradients = convolutions.conv(source, weights(), norm, residual=residual, z=z, table=table)
    dz = into[4] * g.double() + into[5] * above.double() + into[6]
    same(source.rebuilt, dz)
    dh = convolved(source.rebuilt) + residual.double()
    same(output, torch.where(before[0] * z.double() + before[1] > 0, dh, SLOPE * dh))
    rows, below = output.double().flatten(0, 2), z.double().flatten(0, 2)
    by_weight = before[3] * (rows * (below - before[2])).sum(0)
    same(gradients[0], by_weight, 1e-4)
    same(gradients[1], rows.sum(0), 1e-4)
    slope = -before[0] * before[3] * by_weight / len(rows)
    same(completed[5], slope, 1e-4)
    same(completed[6], -before[0] * rows.mean(0) - slope * before[2], 1e-4)


@pytest.mark.parametrize("how", ["PLAIN", "IMAGE"])
def test_the_gradient_of_weights(how):
    h, dz = drawn(2, SIDE, SIDE, 3 if how == "IMAGE" else CHANNELS), drawn(2, SIDE, SIDE, CHANNELS, seed=7)
    read = F.pad(h.double(), (0, CHANNELS - h.shape[-1])).permute(0, 3, 1, 2)
    weight = torch.zeros(CHANNELS, CHANNELS, 3, 3, dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(F.conv2d(read, weight, padding=1), weight, dz.double().permute(0, 3, 1, 2))
    ours = weight_gradients.weight_gradient(Source(how, h), dz)
    np.testing.assert_allclose(ours, exact.permute(0, 2, 3, 1), rtol=1e-4, atol=1e-3)
