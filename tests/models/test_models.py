"""The networks have the sizes, the initialisation and the wiring that spec and paper state."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from cadr.errors import ConfigError
from cadr.models import MLP, MODELS, ConvNet, ResNet18, WideResNet28, choose
from cadr.models.networks import Residual, Unit


@pytest.mark.parametrize(
    ("name", "classes", "parameters"),
    [
        ("wrn-28-2", 10, 1_467_610),
        ("wrn-28-8", 100, 23_401_012),
        ("wrn-37-2", 10, 5_929_434),
        ("resnet-18", 100, 11_226_148),
    ],
)
def test_parameter_counts(name, classes, parameters):
    model = MODELS[name]().build(classes, (3, 32, 32))
    assert sum(p.numel() for p in model.parameters()) == parameters


def count_by_hand(width, stages, classes):
    """Convolutions, batch norms and head of a wide residual network, counted from its description."""
    total, inputs = 3 * 16 * 9, 16
    for stage in range(stages):
        outputs = 16 * width * 2**stage
        for unit in range(4):
            first = inputs if unit == 0 else outputs
            total += 2 * first + 9 * first * outputs + 2 * outputs + 9 * outputs * outputs
            total += first * outputs if unit == 0 else 0
        inputs = outputs
    return total + 2 * inputs + inputs * classes + classes


@pytest.mark.parametrize(("name", "width", "stages"), [("wrn-28-2", 2, 3), ("wrn-28-8", 8, 3), ("wrn-37-2", 2, 4)])
def test_wide_networks_have_the_parts_of_their_description(name, width, stages):
    model = MODELS[name]().build(7, (3, 32, 32))
    assert sum(p.numel() for p in model.parameters()) == count_by_hand(width, stages, 7)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_returns_logits_and_has_channels_last_kernels(name):
    side = 16
    model = MODELS[name]().build(5, (3, side, side))
    images = torch.randn(3, 3, side, side).to(memory_format=torch.channels_last)
    assert model(images).shape == (3, 5)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            assert layer.weight.is_contiguous(memory_format=torch.channels_last)


def test_the_small_network_averages_as_pytorch_does_and_its_gradient_lies_channels_last():
    network = ConvNet().build(5, (3, 16, 16))
    assert isinstance(network, nn.Sequential)
    average = next(i for i, layer in enumerate(network) if isinstance(layer, nn.Flatten)) - 1
    images = torch.randn(3, 3, 16, 16).to(memory_format=torch.channels_last)
    before = network[:average](images)
    gradients: list[torch.Tensor] = []
    before.register_hook(gradients.append)
    logits = network[average:](before)
    assert torch.equal(logits, network[average + 1 :](nn.functional.adaptive_avg_pool2d(before, 1)))
    logits.sum().backward()
    assert gradients[0].is_contiguous(memory_format=torch.channels_last)


def test_initialisation_is_the_authors():
    torch.manual_seed(0)
    model = WideResNet28(width=8).build(10, (3, 32, 32))
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d) and layer.weight.numel() > 10_000:
            wanted = math.sqrt(2 / (layer.kernel_size[0] ** 2 * layer.out_channels))
            assert layer.weight.std().item() == pytest.approx(wanted, rel=0.05)
        if isinstance(layer, nn.BatchNorm2d):
            assert (layer.eps, layer.momentum) == (1e-3, 1e-3)
    assert isinstance(model, Residual)
    glorot = math.sqrt(2 / (model.head.in_features + 10))
    assert model.head.weight.std().item() == pytest.approx(glorot, rel=0.05)


def numpy_conv(x, w, stride):
    pad = w.shape[-1] // 2
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    size = (x.shape[2] - w.shape[2]) // stride + 1
    out = np.zeros((x.shape[0], w.shape[0], size, size))
    for i in range(size):
        for j in range(size):
            patch = x[:, :, i * stride : i * stride + w.shape[2], j * stride : j * stride + w.shape[3]]
            out[:, :, i, j] = np.einsum("ncij,ocij->no", patch, w)
    return out


def numpy_activated(x, norm):
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    n = (x - mean) / np.sqrt(var + 1e-3) * norm.weight.detach().numpy()[:, None, None]
    n = n + norm.bias.detach().numpy()[:, None, None]
    return np.where(n > 0, n, 0.1 * n)


@pytest.mark.parametrize(
    ("inputs", "outputs", "stride", "activated"), [(4, 4, 1, False), (4, 8, 2, False), (4, 8, 1, True)]
)
def test_a_unit_equals_its_description(inputs, outputs, stride, activated):
    torch.manual_seed(1)
    unit = Unit(inputs, outputs, stride, activated).double()
    for norm in (unit.norm1, unit.norm2):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    x = torch.randn(2, inputs, 6, 6, dtype=torch.float64)
    h = numpy_activated(x.numpy(), unit.norm1)
    skip = h if activated else x.numpy()
    if unit.shortcut is not None:
        skip = numpy_conv(skip, unit.shortcut.weight.detach().numpy(), stride)
    middle = numpy_activated(numpy_conv(h, unit.conv1.weight.detach().numpy(), stride), unit.norm2)
    wanted = skip + numpy_conv(middle, unit.conv2.weight.detach().numpy(), 1)
    np.testing.assert_allclose(unit(x).detach().numpy(), wanted, atol=1e-10)


def test_convolution_biases_would_have_no_gradient():
    """Why there are none: batch norm takes a constant away again, wherever in the network it is added."""
    torch.manual_seed(2)
    model = WideResNet28(width=1).build(3, (3, 16, 16)).double()
    offsets = []
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            offset = torch.zeros(1, layer.out_channels, 1, 1, dtype=torch.float64, requires_grad=True)
            layer.register_forward_hook(lambda _module, _inputs, out, offset=offset: out + offset)
            offsets.append(offset)
    images = torch.randn(4, 3, 16, 16, dtype=torch.float64)
    torch.nn.functional.cross_entropy(model(images), torch.tensor([0, 1, 2, 0])).backward()
    assert len(offsets) == 27  # at width 1 the first unit needs no shortcut
    assert all(offset.grad is not None and offset.grad.abs().max() < 1e-12 for offset in offsets)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((64,), "mlp"),
        ((3, 7, 9), "mlp"),
        ((3, 8, 8), "convnet"),
        ((3, 16, 16), "convnet"),
        ((3, 32, 32), "wrn-28-2"),
        ((3, 84, 84), "resnet-18"),
        ((3, 96, 96), "wrn-37-2"),
    ],
)
def test_choice_follows_the_size_of_an_example(shape, name):
    assert choose(shape) == name


@pytest.mark.parametrize(("spec", "size"), [(WideResNet28, 0), (ConvNet, 0), (MLP, (4, 0))])
def test_impossible_sizes_are_refused(spec, size):
    with pytest.raises(ConfigError, match="at least 1"):
        spec(size)


def test_images_that_the_stem_would_leave_nothing_of_are_refused():
    with pytest.raises(ConfigError, match="images of 3×3 pixels and more, not 2×5"):
        ResNet18().build(3, (3, 2, 5))
    images = torch.zeros(2, 3, 3, 3)
    assert ResNet18().build(3, (3, 3, 3)).eval()(images).shape == (2, 3)
