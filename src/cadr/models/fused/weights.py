"""A step's weights in bf16, laid out for the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


def forward_weights(weights: Tensor) -> Tensor:
    """(layers, outputs, inputs, 3, 3) fp32 → (layers, 9, outputs, inputs) bf16, padded to 16 inputs with zeros."""
    weights = torch.nn.functional.pad(weights, (0, 0, 0, 0, 0, max(0, 16 - weights.shape[2])))
    return weights.permute(0, 3, 4, 1, 2).to(torch.bfloat16, memory_format=torch.contiguous_format).flatten(1, 2)


def backward_weights(weights: Tensor) -> Tensor:
    """The transposed convolutions: taps mirrored, inputs and outputs exchanged."""
    mirrored = weights.flip(3, 4).permute(0, 3, 4, 2, 1)
    return mirrored.to(torch.bfloat16, memory_format=torch.contiguous_format).flatten(1, 2)


@dataclass(frozen=True)
class Prepared:
    """Laid out for our kernels (ahead, back), or as they are (plain) for the library's."""

    ahead: Tensor
    back: Tensor
    plain: Tensor


def prepare(own: list[nn.Conv2d], library: list[nn.Conv2d]) -> dict[nn.Conv2d, Prepared]:
    """Layers of one shape are converted together: a step must not be a hundred tiny launches."""
    prepared = {}
    for shape in dict.fromkeys(layer.weight.shape for layer in own):
        layers = [layer for layer in own if layer.weight.shape == shape]
        stacked = torch.stack([layer.weight for layer in layers])
        ahead, back = forward_weights(stacked), backward_weights(stacked)
        for i, layer in enumerate(layers):
            prepared[layer] = Prepared(ahead[i], back[i], ahead[i])
    halves = [torch.empty_like(layer.weight, dtype=torch.bfloat16) for layer in library]
    torch._foreach_copy_(halves, [layer.weight for layer in library])
    return prepared | {layer: Prepared(half, half, half) for layer, half in zip(library, halves, strict=True)}
