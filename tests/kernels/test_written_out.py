"""Which kernel the written-out network calls with what, on any machine.

The kernels are replaced by tensor code that says what they compute (in fp32), and the whole is compared with autograd
through the plain module. The kernels themselves are tested on a Hopper GPU.
"""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.grad import conv2d_weight

from cadr.kernels import cuda_stream
from cadr.kernels.cuda_stream import SideStream
from cadr.kernels.wide_resnet import body, convolutions, library, norms, weights
from cadr.kernels.wide_resnet.library import nchw, nhwc
from cadr.models import WideResNet28
from tests.kernels.laid_out import lay_out
from tests.streams import Streams

SLOPE = 0.1


def read(source):
    """The tensor as a kernel would read it; what should have been kept but was not is NaN."""
    x, table = source.tensor.float(), source.table
    if source.how in ("PLAIN", "IMAGE"):
        return x
    if source.how == "ACTIVATED":
        return F.leaky_relu(table[0] * x + table[1], SLOPE)
    gradient = table[4] * x + table[5] * source.before + table[6]
    return gradient + source.skip if source.how == "JOINED" else gradient


def pad_image(source, x):
    return F.pad(x, (0, 13)) if source.how == "IMAGE" else x


def finish(out, norm):
    mean, variance = out.mean((0, 1, 2)), out.var((0, 1, 2), unbiased=False)
    table = torch.full((7, out.shape[-1]), torch.nan)
    deviation = (variance + norm.eps).rsqrt()
    table[0] = norm.weight.detach() * deviation
    table[1] = norm.bias.detach() - mean * table[0]
    table[2], table[3] = mean, deviation
    return table


def finish_back(table, g, z):
    count, bias = g.numel() // g.shape[-1], g.sum((0, 1, 2))
    weight = (g * (z - table[2]) * table[3]).sum((0, 1, 2))
    table[4], table[5] = table[0], -table[0] * table[3] * weight / count
    table[6] = -table[0] * bias / count - table[5] * table[2]
    return weight, bias


def mask(dh, z, table):
    return torch.where(table[0] * z + table[1] > 0, dh, SLOPE * dh)


def conv(source, weights, norm, *, residual=None, z=None, table=None, keep=True):
    x = read(source)
    if source.how not in ("PLAIN", "IMAGE"):
        source.rebuilt.copy_(x if keep else torch.full_like(x, torch.nan))
    kernel = weights.float().view(3, 3, *weights.shape[1:]).permute(2, 3, 0, 1)
    out = nhwc(F.conv2d(nchw(pad_image(source, x)), kernel, padding=1))
    if residual is not None:
        out = out + residual
    if z is None:
        table = finish(out, norm)
        return out, table, (table, table)
    out = mask(out, z, table)
    return out, table, finish_back(table, out, z)


def weight_gradient(h, dz):
    x = pad_image(h, read(h))
    shape = (dz.shape[-1], x.shape[-1], 3, 3)
    return conv2d_weight(nchw(x), shape, nchw(dz), padding=1).permute(0, 2, 3, 1)


def statistics(tensor, norm, residual=None):
    out = tensor if residual is None else tensor + residual
    return out, finish(out, norm)


def activate(z, table):
    return F.leaky_relu(table[0] * z + table[1], SLOPE)


def activate_and_halve(z, table):
    return activate(z, table), z[:, ::2, ::2].contiguous()


def for_each_pixel(dh, z):
    """A gradient that all pixels of an image share comes once for each image."""
    return (dh if dh.shape == z.shape else dh[:, None, None].expand(z.shape)).float()


def gradient_sums(dh, z, table):
    return finish_back(table, mask(for_each_pixel(dh, z), z, table), z)


def input_gradient(g, z, table, *, masked, residual=None):
    g = mask(for_each_pixel(g, z), z, table) if masked else g
    dz = table[4] * g + table[5] * z + table[6]
    if residual is None:
        return dz
    every = 1 if residual.shape == z.shape else 2
    dz[:, ::every, ::every] += residual
    return dz


@pytest.fixture
def tensor_code(monkeypatch):
    for module in (body, body):
        monkeypatch.setattr(module, "conv", conv)
    monkeypatch.setattr(convolutions, "weight_gradient", weight_gradient)
    monkeypatch.setattr(body, "weight_gradient", weight_gradient)
    for each in (statistics, activate, activate_and_halve, gradient_sums, input_gradient):
        monkeypatch.setattr(norms, each.__name__, each)
    monkeypatch.setattr(weights, "lay_out", lay_out)
    convolve, back, pointwise_back = library.convolve, library._back, library.pointwise_weight_gradient

    def library_back(dy, x, layer, weight, wanted):
        dx, dw, _ = back(dy, x, layer, weight.float(), wanted)
        return dx, dw if dw is None else dw.bfloat16(), None

    def in_fp32(function):
        """The library's products want one kind of numbers."""
        return lambda x, prepared: function(x, replace(prepared, ahead=prepared.ahead.float()))

    for module in (body, library):
        monkeypatch.setattr(module, "convolve", lambda x, layer, weight: convolve(x, layer, weight.float()))
    monkeypatch.setattr(library, "_back", library_back)
    monkeypatch.setattr(body, "pointwise", in_fp32(library.pointwise))
    monkeypatch.setattr(library, "pointwise_input_gradient", in_fp32(library.pointwise_input_gradient))
    monkeypatch.setattr(library, "pointwise_weight_gradient", lambda dy, x: pointwise_back(dy, x).bfloat16())


@pytest.mark.parametrize(("width", "side"), [(2, 32), (1, 32), (2, 24)])
def test_the_calls_make_the_network_and_its_gradients(tensor_code, width, side):
    torch.manual_seed(0)
    plain: Any = WideResNet28(width=width).build(4, (3, side, side))
    for layer in plain.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.weight, 1.0, 0.1)
            nn.init.normal_(layer.bias, 0.0, 0.1)
        elif isinstance(layer, nn.Conv2d):  # the weights are prepared in bf16: let that lose nothing
            layer.weight.data = layer.weight.data.bfloat16().float()
    written = copy.deepcopy(plain)
    images = torch.randn(4, 3, side, side).to(memory_format=torch.channels_last)
    labels = torch.randint(4, (4,))
    wanted = plain(images)
    F.cross_entropy(wanted, labels).backward()
    logits = written.head(body.body(written, images))
    F.cross_entropy(logits, labels).backward()
    torch.testing.assert_close(logits, wanted, rtol=1e-3, atol=1e-3)
    for (name, ours), theirs in zip(written.named_parameters(), plain.parameters(), strict=True):
        error = (ours.grad - theirs.grad).norm() / theirs.grad.norm()
        assert error < 0.02, (name, error)  # the gradient enters in bf16


@pytest.mark.parametrize(("width", "side"), [(2, 32), (1, 32)])
def test_gradients_of_weights_are_waited_for_and_what_they_read_is_kept(tensor_code, monkeypatch, width, side):
    network: Any = WideResNet28(width=width).build(4, (3, side, side))
    images = torch.randn(2, 3, side, side).to(memory_format=torch.channels_last)
    with Streams(monkeypatch) as streams:
        beside = SideStream(torch.device("cuda"))
        monkeypatch.setattr(cuda_stream, "_side_stream", lambda device: beside)
        pooled = body.body(network, images)
        again = body.body(network, images)  # as methods do that call the network more than once
        (pooled.square().sum() + again.sum()).backward()
    assert streams.beside > 20
    assert streams.races == []
