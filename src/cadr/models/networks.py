"""The networks, by name: a dataclass of settings each, whose `build` gives a plain `nn.Module`.

Residual networks are as FixMatch and CADR use them (wide ones: Zagoruyko and Komodakis, 2016), with the authors'
initialisation, batch norm and activation; two small nets are for small pictures and for features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cadr.errors import ConfigError
from cadr.utils.options import check_numbers, option


class ModelSpec(Protocol):
    """Settings that can build a network."""

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        """A fresh network; `input_shape` is one example's: (3, h, w) or (d,)."""
        ...


SLOPE = 0.1  # of the leaky ReLU
BN_MOMENTUM = 0.001  # TensorFlow's 0.999
BN_EPS = 0.001


def activate(x: Tensor) -> Tensor:
    return F.leaky_relu(x, SLOPE)


def batch_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=BN_EPS, momentum=BN_MOMENTUM)


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """A convolution with weights from N(0, 2 / (k²·outputs)), as the authors draw them.

    It has no bias: every output passes through batch norm (directly, or after sums and 1×1 convolutions that carry a
    constant to a constant), which subtracts the bias again, so the authors' biases never leave their initial zero.
    """
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.normal_(layer.weight, std=math.sqrt(2.0 / (kernel * kernel * outputs)))
    return layer


def head(features: int, num_classes: int) -> nn.Linear:
    layer = nn.Linear(features, num_classes)
    nn.init.xavier_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class Unit(nn.Module):
    """A pre-activation residual unit; with `activated_skip` (the first unit of the net) the skip is activated too."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, activated_skip: bool = False) -> None:
        super().__init__()
        self.activated_skip = activated_skip
        self.norm1 = batch_norm(inputs)
        self.conv1 = conv(inputs, outputs, 3, stride)
        self.norm2 = batch_norm(outputs)
        self.conv2 = conv(outputs, outputs, 3)
        self.shortcut = conv(inputs, outputs, 1, stride) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        h = activate(self.norm1(x))
        skip = h if self.activated_skip else x
        if self.shortcut is not None:
            skip = self.shortcut(skip)
        out: Tensor = skip + self.conv2(activate(self.norm2(self.conv1(h))))
        return out


class Residual(nn.Module):
    """Stem, units, batch norm, global average, linear head."""

    def __init__(self, stem: nn.Module, units: list[Unit], features: int, num_classes: int) -> None:
        super().__init__()
        self.stem = stem
        self.units = nn.ModuleList(units)
        self.norm = batch_norm(features)
        self.head = head(features, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for unit in self.units:
            x = unit(x)
        pooled = activate(self.norm(x)).mean(dim=(2, 3))
        logits: Tensor = self.head(pooled)
        return logits


def channels_last(module: nn.Module) -> nn.Module:
    """Kernels laid out for NHWC, which is how views are laid out."""
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


_WIDEST_FACTOR = 2**7  # the published factors go up to 10


def wide_resnet(width: int, stages: int, num_classes: int) -> nn.Module:
    """Four units a stage, 16·`width` channels in the first stage, twice as many in each further one."""
    units: list[Unit] = []
    inputs = 16
    for stage in range(stages):
        outputs = 16 * width << stage
        for number in range(4):
            first = number == 0
            units.append(Unit(inputs, outputs, 2 if first and stage else 1, activated_skip=first and not stage))
            inputs = outputs
    return channels_last(Residual(conv(3, 16, 3), units, inputs, num_classes))


@dataclass(frozen=True)
class WideResNet28:
    """WRN-28-k: three stages; k = 2 for CIFAR-10 (1.5 M parameters), k = 8 for CIFAR-100 (23.4 M)."""

    stages: ClassVar[int] = 3
    width: int = option(2, "widening factor k: 16·k channels in the first stage")

    def __post_init__(self) -> None:
        check_numbers(self, width=_WIDEST_FACTOR)
        if self.width < 1:
            raise ConfigError(f"the widening factor of a wide residual network must be at least 1, not {self.width}")

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        return wide_resnet(self.width, self.stages, num_classes)


@dataclass(frozen=True)
class WideResNet28x8(WideResNet28):
    """WRN-28-8, the paper's net for CIFAR-100 (23.4 M parameters)."""

    width: int = option(8, "widening factor k: 16·k channels in the first stage")


@dataclass(frozen=True)
class WideResNet37(WideResNet28):
    """WRN-37-2, the paper's net for STL-10: the same with a fourth stage (5.9 M parameters)."""

    stages: ClassVar[int] = 4


_SMALLEST = 3  # pixels: less does not survive the stem


class _Stem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = conv(3, 64, 7, 2)
        self.norm = batch_norm(64)

    def forward(self, images: Tensor) -> Tensor:
        return F.max_pool2d(activate(self.norm(self.conv(images))), 2)


@dataclass(frozen=True)
class ResNet18:
    """ResNet-18 with pre-activation units: 7×7 stem with stride 2, 2×2 max-pool, 64 to 512 channels."""

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        if min(input_shape[1:]) < _SMALLEST:
            size = "×".join(map(str, input_shape[1:]))
            raise ConfigError(f"resnet-18 takes images of {_SMALLEST}×{_SMALLEST} pixels and more, not {size}")
        units: list[Unit] = []
        inputs = 64
        for stage in range(4):
            outputs = 64 << stage
            units += [Unit(inputs, outputs, 2 if stage else 1), Unit(outputs, outputs)]
            inputs = outputs
        return channels_last(Residual(_Stem(), units, inputs, num_classes))


# A small net sees hundreds of steps, not hundreds of thousands: statistics that follow within tens of steps.
_SMALL_BN_MOMENTUM = 0.1
_WIDEST_LAYER = 2**14  # its kernels take a gibibyte and more


@dataclass(frozen=True)
class ConvNet:
    """Three 3×3 convolutions with batch norm, each halving the picture, then a global average."""

    channels: int = option(32, "channels of the first convolution; doubled by each of the other two")

    def __post_init__(self) -> None:
        check_numbers(self, channels=_WIDEST_LAYER)
        if self.channels < 1:
            raise ConfigError(f"the small convolutional net needs at least 1 channel, not {self.channels}")

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        layers: list[nn.Module] = []
        inputs = 3
        for stage in range(3):
            outputs = self.channels << stage
            norm = batch_norm(outputs)
            norm.momentum = _SMALL_BN_MOMENTUM
            layers += [conv(inputs, outputs, 3, 2 if stage else 1), norm, nn.LeakyReLU(SLOPE, inplace=True)]
            inputs = outputs
        return channels_last(nn.Sequential(*layers, _Average(), nn.Flatten(), head(inputs, num_classes)))


class _Average(nn.Module):
    """(n, c, h, w) to (n, 1, 1, c). Its gradient lies channels last, as all before it does; that of AdaptiveAvgPool2d
    does not, and to read both orders at once makes the activation's several times as slow on a CPU."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).mean((1, 2), keepdim=True)


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron with batch norm: for features and embeddings."""

    hidden: tuple[int, ...] = option((128, 128), "widths of the hidden layers")

    def __post_init__(self) -> None:
        check_numbers(self, hidden=_WIDEST_LAYER)
        if any(width < 1 for width in self.hidden):
            raise ConfigError(f"every hidden layer needs at least 1 unit, not {self.hidden}")

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        inputs = math.prod(input_shape)
        layers: list[nn.Module] = [nn.Flatten()]
        for outputs in self.hidden:
            linear = nn.Linear(inputs, outputs)
            nn.init.kaiming_normal_(linear.weight, a=SLOPE)
            nn.init.zeros_(linear.bias)
            layers += [linear, nn.BatchNorm1d(outputs, momentum=_SMALL_BN_MOMENTUM), nn.LeakyReLU(SLOPE)]
            inputs = outputs
        return nn.Sequential(*layers, head(inputs, num_classes))


MODELS: dict[str, type[ModelSpec]] = {
    "wrn-28-2": WideResNet28,
    "wrn-28-8": WideResNet28x8,
    "wrn-37-2": WideResNet37,
    "resnet-18": ResNet18,
    "convnet": ConvNet,
    "mlp": MLP,
}


def choose(input_shape: tuple[int, ...]) -> str:
    """The network that suits the data when nobody names one."""
    if len(input_shape) == 1:
        return "mlp"
    side = min(input_shape[1:])
    if side < 8:
        return "mlp"
    if side < 24:
        return "convnet"
    if side <= 48:
        return "wrn-28-2"
    return "resnet-18" if side < 96 else "wrn-37-2"


def normalised(images: Tensor, model: nn.Module | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
    """uint8 (n, h, w, 3) to (n, 3, h, w) in channels-last memory, scaled as the model wants it.

    That is to [−1, 1], or, for a model with buffers `pixel_mean` and `pixel_std`, (3, 1, 1), by these, for pixels in
    [0, 1], as pretrained networks have them.
    """
    x = images.permute(0, 3, 1, 2).to(torch.float32)
    mean, std = getattr(model, "pixel_mean", None), getattr(model, "pixel_std", None)
    return (x / 127.5 - 1.0 if mean is None or std is None else (x / 255.0 - mean) / std).to(dtype)
