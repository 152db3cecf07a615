"""The kernels of batch norm around the library's convolutions, played on a CPU, against PyTorch in double precision."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cadr.kernels import nvrtc
from cadr.kernels.wide_resnet import norms
from tests import emulated

pytestmark = pytest.mark.skipif(emulated.COMPILER is None, reason="needs g++")

SHAPES = [(3, 5, 7, 32), (2, 4, 3, 512)]  # odd sides, and more channels than a warp's lanes hold
SLOPE = 0.1


def expressions(images, height, width, channels):
    for halved in ("0,0", f"{height},{width}"):
        yield f"activate<{channels},{halved}>"
        for shared in (1, height * width):
            yield f"input_gradient<{channels},true,{shared},true,{halved}>"
    yield from (f"statistics<{channels},{residual}>" for residual in ("true", "false"))
    yield from (f"gradient_sums<{channels},{shared}>" for shared in (1, height * width))
    yield from (f"input_gradient<{channels},{masked},1,false,0,0>" for masked in ("true", "false"))


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    names = [name for shape in SHAPES for name in expressions(*shape)]
    return emulated.Emulated(tmp_path_factory.mktemp("norms"), norms._SOURCES, names, threads=512)


@pytest.fixture(autouse=True)
def on_a_cpu(played, monkeypatch):
    monkeypatch.setattr(nvrtc, "kernel", played.kernel)
    monkeypatch.setattr(norms, "multiprocessors", lambda device: 1)


def drawn(shape, seed):
    """bf16, and what it stands for in double precision."""
    half = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()
    return half, half.double()


def layer(channels):
    norm = nn.BatchNorm2d(channels, momentum=0.1)
    generator = torch.Generator().manual_seed(9)
    for tensor in (norm.weight.data, norm.bias.data, norm.running_mean, norm.running_var):
        assert tensor is not None
        tensor.copy_(1 + 0.2 * torch.randn(channels, generator=generator))
    return norm


def same(ours, exact, within=1e-2):
    assert torch.linalg.vector_norm(ours.double() - exact) < within * torch.linalg.vector_norm(exact)


def plain(z, norm):
    """h, with z's gradient to come."""
    z = z.clone().requires_grad_()
    weight, bias = (p.detach().double().requires_grad_() for p in (norm.weight, norm.bias))
    normed = F.batch_norm(z.flatten(0, 2), None, None, weight, bias, training=True, eps=norm.eps).reshape(z.shape)
    return z, weight, bias, F.leaky_relu(normed, SLOPE), normed.detach() > 0


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("joined", [False, True])
def test_statistics(shape, joined):
    (x, exact), (residual, more), norm = drawn(shape, 1), drawn(shape, 2), layer(shape[-1])
    before = norm.running_mean.clone().double(), norm.running_var.clone().double()
    output, table = norms.statistics(x, norm, residual if joined else None)
    if joined:
        same(output, exact + more, 1e-2)
    rows = output.double().flatten(0, 2)
    mean, var = rows.mean(0), rows.var(0, correction=0)
    deviation = (var + norm.eps).sqrt()
    same(table[0], norm.weight.double() / deviation, 1e-5)
    same(table[1], norm.bias.double() - mean * norm.weight.double() / deviation, 1e-5)
    same(table[2], mean, 1e-5)
    same(table[3], 1 / deviation, 1e-5)
    same(norm.running_mean, 0.9 * before[0] + 0.1 * mean, 1e-5)
    same(norm.running_var, 0.9 * before[1] + 0.1 * rows.var(0), 1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_activation_and_every_second_pixel_of_every_second_row(shape):
    (z, exact), norm = drawn(shape, 3), layer(shape[-1])
    _, table = norms.statistics(z, norm)
    *_, h, _ = plain(exact, norm)
    ours, halved = norms.activate_and_halve(z, table)
    same(ours, h)
    assert torch.equal(halved, z[:, ::2, ::2])
    assert torch.equal(norms.activate(z, table), ours)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("shared", [False, True], ids=["each", "one for an image"])
def test_the_way_back(shape, shared):
    (z, exact), norm = drawn(shape, 4), layer(shape[-1])
    dh, above = drawn((shape[0], shape[-1]) if shared else shape, 5)
    _, table = norms.statistics(z, norm)
    exact, weight, bias, h, positive = plain(exact, norm)
    spread = above[:, None, None].expand(shape) if shared else above
    dz, by_weight, by_bias = torch.autograd.grad(h, (exact, weight, bias), spread)
    ours = norms.gradient_sums(dh, z, table)
    same(ours[0], by_weight, 1e-4)
    same(ours[1], by_bias, 1e-4)
    everywhere, exact_more = drawn(shape, 6)
    same(norms.input_gradient(dh, z, table, masked=True, residual=everywhere), dz + exact_more)
    halved = everywhere[:, ::2, ::2].contiguous()
    thinned = torch.zeros(shape, dtype=torch.float64)
    thinned[:, ::2, ::2] = halved.double()
    same(norms.input_gradient(dh, z, table, masked=True, residual=halved), dz + thinned)
    if not shared:
        same(norms.input_gradient(dh, z, table, masked=True), dz)
        behind = (above * torch.where(positive, 1.0, SLOPE)).bfloat16()
        same(norms.input_gradient(behind, z, table, masked=False), dz)
