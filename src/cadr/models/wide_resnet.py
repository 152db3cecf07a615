"""Wide residual networks (Zagoruyko and Komodakis, 2016) as FixMatch and CADR use them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from cadr.errors import ConfigError
from cadr.models.layers import Residual, Unit, channels_last, conv
from cadr.utils.limits import check_numbers
from cadr.utils.options import option

_WIDEST = 2**7  # the published factors go up to 10


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

    width: int = option(2, "widening factor k: 16·k channels in the first stage")

    def __post_init__(self) -> None:
        _check(self)

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        return wide_resnet(self.width, 3, num_classes)


@dataclass(frozen=True)
class WideResNet28x8(WideResNet28):
    """WRN-28-8, the paper's net for CIFAR-100 (23.4 M parameters)."""

    width: int = option(8, "widening factor k: 16·k channels in the first stage")


@dataclass(frozen=True)
class WideResNet37:
    """WRN-37-2, the paper's net for STL-10: the same with a fourth stage (5.9 M parameters)."""

    width: int = option(2, "widening factor k: 16·k channels in the first stage")

    def __post_init__(self) -> None:
        _check(self)

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        return wide_resnet(self.width, 4, num_classes)


def _check(net: WideResNet28 | WideResNet37) -> None:
    check_numbers(net, width=_WIDEST)
    if net.width < 1:
        raise ConfigError(f"the widening factor of a wide residual network must be at least 1, not {net.width}")
