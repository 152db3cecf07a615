"""The written-out network is the plain one: same logits, gradients and running statistics, to bf16's precision.

What needs a Hopper GPU is skipped elsewhere; how weights are laid out for the kernels is checked everywhere.
"""

import copy
import ctypes
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from cadr.kernels import nvrtc, wide_resnet
from cadr.kernels.wide_resnet import weights
from cadr.kernels.wide_resnet.body import our_layers
from cadr.models import WideResNet28, WideResNet37
from cadr.models.networks import Residual, channels_last
from tests.kernels.laid_out import lay_out

hopper = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs a Hopper GPU"
)


def by_taps(x, taps):
    """What the kernels compute, slowly: x (n, h, w, inputs), taps (9, outputs, inputs)."""
    x = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = x.shape[1] - 2, x.shape[2] - 2
    shifted = [x[:, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    return sum(np.einsum("nhwi,oi->nhwo", part, tap) for part, tap in zip(shifted, taps, strict=True))


def prepared(monkeypatch, own, library):
    monkeypatch.setattr(weights, "lay_out", lay_out)
    return weights.prepare(own, library)


def layer_of(inputs, outputs, kernel=3):
    layer = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    layer.weight.data = layer.weight.data.bfloat16().float()  # so that bf16 loses nothing
    return channels_last(layer) if kernel == 3 else layer


def test_weights_of_our_layers_make_the_convolution_and_the_transposed_one(monkeypatch):
    torch.manual_seed(0)
    layers = [layer_of(16, 5), layer_of(16, 5)]
    laid = prepared(monkeypatch, layers, [])[layers[1]]
    x, dy, weight = torch.randn(3, 16, 6, 6), torch.randn(3, 5, 6, 6), layers[1].weight
    ahead = by_taps(x.permute(0, 2, 3, 1).double().numpy(), laid.ahead.double().numpy())
    back = by_taps(dy.permute(0, 2, 3, 1).double().numpy(), laid.back.double().numpy())
    np.testing.assert_allclose(ahead, F.conv2d(x, weight, padding=1).permute(0, 2, 3, 1).detach(), atol=1e-5)
    wanted = F.conv_transpose2d(dy, weight, padding=1).permute(0, 2, 3, 1).detach()
    np.testing.assert_allclose(back, wanted, atol=1e-5)


@pytest.mark.parametrize("kernel", [1, 3])
def test_weights_of_the_librarys_layers_make_the_convolution_and_the_transposed_one(monkeypatch, kernel):
    torch.manual_seed(1)
    layers = [layer_of(7, 5, kernel), layer_of(6, 5, kernel)]
    laid = prepared(monkeypatch, [], layers)[layers[1]]
    x, dy, weight = torch.randn(3, 6, 4, 4), torch.randn(3, 5, 4, 4), layers[1].weight
    assert laid.ahead.is_contiguous(memory_format=torch.channels_last)
    assert laid.back.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(laid.ahead.float(), weight)
    back = F.conv2d(dy, laid.back.float(), padding=kernel // 2)
    torch.testing.assert_close(back, F.conv_transpose2d(dy, weight, padding=kernel // 2))
    assert x.shape == back.shape


def test_images_of_three_channels_are_padded_to_sixteen(monkeypatch):
    layer = layer_of(3, 4)
    taps = prepared(monkeypatch, [layer], [])[layer].ahead
    assert taps.shape == (9, 4, 16)
    assert taps[..., 3:].abs().max() == 0
    assert torch.equal(taps[5, :, :3].float(), layer.weight[:, :, 1, 2])


def test_the_kernel_is_told_where_weights_lie_and_where_they_go(monkeypatch):
    """The kernel's own loop, played on the table that it is given."""

    def launch(grid, block, args):
        table, target = args
        assert grid[1] == len(table)
        for start, to, outputs, inputs, padded, kernel, *distances, mirrored in table.tolist():
            memory = np.ctypeslib.as_array((ctypes.c_float * (outputs * inputs * kernel**2)).from_address(start))
            by_output, by_input, by_row, by_column, to_output, to_tap, to_input = distances
            for o, i, y, x in np.ndindex(outputs, padded, kernel, kernel):
                tap = kernel**2 - 1 - (y * kernel + x) if mirrored else y * kernel + x
                value = memory[o * by_output + i * by_input + y * by_row + x * by_column] if i < inputs else 0.0
                target[to + o * to_output + tap * to_tap + i * to_input] = float(value)

    layers = [layer_of(3, 2), layer_of(4, 3), layer_of(2, 3, kernel=1)]
    monkeypatch.setattr(nvrtc, "kernel", lambda sources, name: launch)
    played = weights.prepare(layers[:1], layers[1:])
    wanted = prepared(monkeypatch, layers[:1], layers[1:])
    for layer in layers:
        assert torch.equal(played[layer].ahead, wanted[layer].ahead)
        assert torch.equal(played[layer].back, wanted[layer].back)


def test_the_plain_network_is_called_where_the_kernels_cannot_run():
    model = WideResNet28(width=1).build(3, (3, 32, 32))
    images = torch.zeros(2, 3, 32, 32, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    assert not wide_resnet.available(model, torch.device("cpu"))
    assert not wide_resnet.applies(model, images)


@pytest.mark.parametrize(("capability", "runs"), [((8, 0), False), ((8, 9), False), ((9, 0), True), ((10, 0), False)])
def test_the_kernels_run_on_hopper_gpus_alone(capability, runs, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    with torch.device("meta"):
        model = WideResNet28().build(3, (3, 32, 32))
    assert wide_resnet.available(model, torch.device("cuda")) is runs


@pytest.mark.parametrize(("width", "fit"), [(1, True), (2, True), (3, False), (8, True), (10, False), (32, False)])
def test_networks_whose_channels_the_kernels_cannot_share_out_are_left_to_the_plain_module(width, fit):
    with torch.device("meta"):
        model = WideResNet28(width=width).build(3, (3, 32, 32))
    assert wide_resnet.fits(model) is fit


@pytest.mark.parametrize(
    ("width", "size", "layers"), [(2, (32, 32), 16), (2, (32, 48), 0), (2, (16, 16), 0), (4, (32, 32), 1)]
)
def test_our_convolutions_see_only_images_of_their_size(width, size, layers):
    with torch.device("meta"):
        model = WideResNet28(width=width).build(3, (3, *size))
    assert isinstance(model, Residual)
    assert len(our_layers(model, size)) == layers


def relative(a, b):
    return ((a.double() - b.double()).norm() / b.double().norm()).item()


def all_of(tensors, names):
    return torch.cat([tensors[name].flatten() for name in names])


@hopper
@pytest.mark.parametrize(
    ("spec", "size"),
    [
        (WideResNet28(), (32, 32)),
        (WideResNet28(width=1), (32, 32)),
        (WideResNet28(width=4), (32, 32)),
        (WideResNet37(), (96, 96)),
        (WideResNet28(), (33, 33)),  # no even number of rows and columns to halve
        (WideResNet28(), (32, 48)),
    ],
)
def test_logits_gradients_and_statistics_are_those_of_the_plain_network(spec, size):
    torch.manual_seed(2)
    plain = spec.build(10, (3, *size)).cuda()
    for layer in plain.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.weight, 1.0, 0.1)
            nn.init.normal_(layer.bias, 0.0, 0.1)
    written, cast = copy.deepcopy(plain), copy.deepcopy(plain)
    images = torch.randn(64, 3, *size, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(10, (64,), device="cuda")

    def run(model, call):
        logits = call(model)
        F.cross_entropy(logits.float(), labels).backward()
        return logits, {name: p.grad for name, p in model.named_parameters()}

    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    exact_logits, exact = run(plain, lambda model: model(images))
    with torch.autocast("cuda", torch.bfloat16):
        cast_logits, half = run(cast, lambda model: model(images))
    ours_logits, ours = run(written, lambda model: wide_resnet.logits(model, images.bfloat16()))
    assert wide_resnet.applies(written, images.bfloat16())
    # bf16 is coarse: the yardstick is how far the library's own bf16 is from fp32.
    assert relative(ours_logits, exact_logits) < 1.3 * relative(cast_logits, exact_logits)
    names = list(exact)
    assert relative(all_of(ours, names), all_of(exact, names)) < 1.2 * relative(
        all_of(half, names), all_of(exact, names)
    )
    for (name, buffer), wanted in zip(written.named_buffers(), plain.buffers(), strict=True):
        if "running" in name:
            assert relative(buffer, wanted) < 0.02, name


@hopper
def test_the_kernel_lays_out_weights_as_the_tensor_code_does(monkeypatch):
    model = channels_last(WideResNet28().build(10, (3, 32, 32)).cuda())
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    by_kernel = weights.prepare(layers[:16], layers[16:])
    by_tensor_code = prepared(monkeypatch, layers[:16], layers[16:])
    for layer in layers:
        assert torch.equal(by_kernel[layer].ahead, by_tensor_code[layer].ahead)
        assert torch.equal(by_kernel[layer].back, by_tensor_code[layer].back)


@hopper
def test_the_same_numbers_every_time():
    torch.manual_seed(3)
    model: Any = WideResNet28().build(10, (3, 32, 32)).cuda()
    images = torch.randn(96, 3, 32, 32, device="cuda").bfloat16().to(memory_format=torch.channels_last)
    results = []
    for _ in range(3):
        model.zero_grad()
        logits = wide_resnet.logits(model, images)
        logits.square().sum().backward()
        results.append((logits.detach(), model.stem.weight.grad.clone()))
    assert all(torch.equal(results[0][0], logits) for logits, _ in results)
    assert all(torch.equal(results[0][1], gradient) for _, gradient in results)
