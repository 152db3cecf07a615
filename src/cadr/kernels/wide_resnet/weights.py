"""A step's weights in bf16, laid out for the kernels, all in one launch: a step must not be a hundred tiny ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from cadr.kernels import nvrtc
from cadr.kernels.wide_resnet.convolutions import KERNELS

_SOURCES = (KERNELS / "common.cuh", KERNELS / "weights.cu")
_ALIGNMENT = 64  # elements: every layer's weights start at a multiple of 128 bytes
_BLOCKS, _THREADS = 128, 256  # for each layout
_LEAST_INPUTS = 16  # that our kernels read; images have three


@dataclass(frozen=True)
class WeightLayout:
    """How a convolution's weights lie in memory: distances between outputs, taps and inputs, in elements."""

    outputs: int
    inputs: int  # with those that are padded by zeros
    kernel: int
    distances: tuple[int, int, int]
    mirrored: bool  # taps in reverse

    @property
    def size(self) -> int:
        return self.outputs * self.inputs * self.kernel**2


def _ahead(layer: nn.Conv2d, own: bool) -> WeightLayout:
    """(taps, outputs, inputs) for our kernels, (outputs, taps, inputs), which is channels last, for the library's."""
    outputs, inputs, kernel = layer.out_channels, layer.in_channels, layer.kernel_size[0]
    if not own:
        return WeightLayout(outputs, inputs, kernel, (kernel**2 * inputs, inputs, 1), False)
    inputs = max(inputs, _LEAST_INPUTS)
    return WeightLayout(outputs, inputs, kernel, (inputs, outputs * inputs, 1), False)


def _back(layer: nn.Conv2d, own: bool) -> WeightLayout:
    """The transposed convolution's: taps mirrored, inputs and outputs exchanged."""
    outputs, inputs, kernel = layer.out_channels, layer.in_channels, layer.kernel_size[0]
    distances = (1, inputs * outputs, outputs) if own else (1, outputs, kernel**2 * outputs)
    return WeightLayout(outputs, inputs, kernel, distances, True)


@dataclass(frozen=True)
class PreparedWeights:
    """A layer's weights for the way ahead, and those of the transposed convolution for the way back: (taps, outputs,
    inputs) in our kernels' layers, (outputs, inputs, rows, columns) in the library's."""

    ahead: Tensor
    back: Tensor


def prepare(own: list[nn.Conv2d], library: list[nn.Conv2d]) -> dict[nn.Conv2d, PreparedWeights]:
    layers = own + library
    layouts = [how(layer, i < len(own)) for i, layer in enumerate(layers) for how in (_ahead, _back)]
    places = [0]
    for layout in layouts:
        places.append(places[-1] + -(-layout.size // _ALIGNMENT) * _ALIGNMENT)
    target = torch.empty(places[-1], dtype=torch.bfloat16, device=layers[0].weight.device)
    lay_out([layer.weight for layer in layers for _ in range(2)], layouts, places[:-1], target)
    parts = [target[place : place + layout.size] for place, layout in zip(places, layouts, strict=False)]
    prepared = {}
    for i, layer in enumerate(layers):
        ahead, back, kernel = parts[2 * i], parts[2 * i + 1], layer.kernel_size[0]
        if i < len(own):
            prepared[layer] = PreparedWeights(
                ahead.view(kernel**2, layer.out_channels, -1), back.view(kernel**2, layer.in_channels, -1)
            )
        else:
            prepared[layer] = PreparedWeights(
                ahead.view(layer.out_channels, kernel, kernel, -1).permute(0, 3, 1, 2),
                back.view(layer.in_channels, kernel, kernel, -1).permute(0, 3, 1, 2),
            )
    return prepared


def lay_out(weights: list[Tensor], layouts: list[WeightLayout], places: list[int], target: Tensor) -> None:
    """Copy each weight to its place in the target."""
    rows = []
    for weight, layout, place in zip(weights, layouts, places, strict=True):
        row = (weight.data_ptr(), place, layout.outputs, weight.shape[1], layout.inputs, layout.kernel)
        rows.append((*row, *weight.stride(), *layout.distances, int(layout.mirrored)))
    nvrtc.kernel(_SOURCES, "lay_out")(
        grid=(_BLOCKS, len(rows), 1),
        block=(_THREADS, 1, 1),
        args=[_table(tuple(rows), target.device), target],
    )


@cache
def _table(rows: tuple[tuple[int, ...], ...], device: torch.device) -> Tensor:
    """What the kernel reads of each layout. Kept for good: a captured step reads it with every replay."""
    return torch.tensor(rows, dtype=torch.int64, device=device)
