"""A wide residual network's forward and backward pass, written out.

The same mathematics as `parts.Residual` in training mode under bf16: the convolutions of the first stage run in our own
kernels with batch norm, activation, residual sum and statistics folded in (at 32 channels the library's convolutions
and the passes between them cost several times the memory traffic they need); the others run in cuDNN between fused
normalisation kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from cadr.models.fused import launch
from cadr.models.fused.launch import Source
from cadr.models.parts import Residual, Unit

Gradients = dict[Tensor, Tensor]  # by parameter


def nchw(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 3, 1, 2)


def nhwc(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 2, 3, 1)


def forward_weights(weights: Tensor) -> Tensor:
    """(layers, outputs, inputs, 3, 3) fp32 → (layers, 9, outputs, inputs) bf16, padded to 16 inputs with zeros."""
    weights = torch.nn.functional.pad(weights, (0, 0, 0, 0, 0, max(0, 16 - weights.shape[2])))
    return weights.permute(0, 3, 4, 1, 2).to(torch.bfloat16, memory_format=torch.contiguous_format).flatten(1, 2)


def backward_weights(weights: Tensor) -> Tensor:
    """The transposed convolutions: taps mirrored, inputs and outputs exchanged."""
    mirrored = weights.flip(3, 4).permute(0, 3, 4, 2, 1)
    return mirrored.to(torch.bfloat16, memory_format=torch.contiguous_format).flatten(1, 2)


@dataclass(frozen=True)
class _Prepared:
    """A step's weights in bf16: laid out for our kernels (ahead, back), or as they are (plain) for the library's."""

    ahead: Tensor
    back: Tensor
    plain: Tensor


def _prepare(own: list[nn.Conv2d], library: list[nn.Conv2d]) -> dict[nn.Conv2d, _Prepared]:
    """Layers of one shape are converted together: a step must not be a hundred tiny launches."""
    prepared = {}
    for shape in dict.fromkeys(layer.weight.shape for layer in own):
        layers = [layer for layer in own if layer.weight.shape == shape]
        stacked = torch.stack([layer.weight for layer in layers])
        ahead, back = forward_weights(stacked), backward_weights(stacked)
        for i, layer in enumerate(layers):
            prepared[layer] = _Prepared(ahead[i], back[i], ahead[i])
    halves = [torch.empty_like(layer.weight, dtype=torch.bfloat16) for layer in library]
    torch._foreach_copy_(halves, [layer.weight for layer in library])
    return prepared | {layer: _Prepared(half, half, half) for layer, half in zip(library, halves, strict=True)}


def _convolve(x: Tensor, layer: nn.Conv2d, weight: Tensor) -> Tensor:
    return nhwc(torch.nn.functional.conv2d(nchw(x), weight, stride=layer.stride, padding=layer.padding))


def _convolve_back(dy: Tensor, x: Tensor, layer: nn.Conv2d, weight: Tensor) -> tuple[Tensor, Tensor]:
    dx, dw, _ = torch.ops.aten.convolution_backward(
        nchw(dy), nchw(x), weight, None, layer.stride, layer.padding, [1, 1], False, [0, 0], 1, [True, True, False]
    )
    return nhwc(dx), dw


class _OwnUnit:
    """A stride-1 unit in our kernels. The skip of the first is activated and widened by a 1×1 convolution."""

    def __init__(self, unit: Unit, norm_after: nn.BatchNorm2d, weights: dict[nn.Conv2d, _Prepared]) -> None:
        self.unit, self.norm_after, self.weights = unit, norm_after, weights

    def forward(self, x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        unit, weights = self.unit, self.weights
        self.x, self.table = x, table
        entry = Source("ACTIVATED", x, table)
        self.z, self.table_z, _ = launch.conv(entry, weights[unit.conv1].ahead, unit.norm2)
        self.h1, skip = entry.rebuilt, x
        if unit.shortcut is not None:
            skip = _convolve(self.h1, unit.shortcut, weights[unit.shortcut].plain)
        middle = Source("ACTIVATED", self.z, self.table_z)
        out, out_table, _ = launch.conv(middle, weights[unit.conv2].ahead, self.norm_after, residual=skip)
        self.h2 = middle.rebuilt
        return out, out_table

    def backward(self, dout: Tensor, gradients: Gradients) -> Tensor:
        unit, weights = self.unit, self.weights
        g2, _, norm2 = launch.conv(
            Source("PLAIN", dout), weights[unit.conv2].back, unit.norm2, z=self.z, table=self.table_z
        )
        gradients[unit.conv2.weight] = nchw(launch.weight_gradient(self.h2, dout))
        extra = None
        if unit.shortcut is not None:
            extra, gradients[unit.shortcut.weight] = _convolve_back(
                dout, self.h1, unit.shortcut, weights[unit.shortcut].plain
            )
        dz = Source("GRADIENT", g2, self.table_z, self.z)
        g1, _, norm1 = launch.conv(dz, weights[unit.conv1].back, unit.norm1, z=self.x, table=self.table, residual=extra)
        gradients[unit.conv1.weight] = nchw(launch.weight_gradient(self.h1, dz.rebuilt))
        gradients[unit.norm1.weight], gradients[unit.norm1.bias] = norm1
        gradients[unit.norm2.weight], gradients[unit.norm2.bias] = norm2
        skip = dout if unit.shortcut is None else None
        return launch.input_gradient(g1, self.x, self.table, masked=False, residual=skip)


class _LibraryUnit:
    """A unit whose convolutions are cuDNN's, with our normalisation between them."""

    def __init__(self, unit: Unit, norm_after: nn.BatchNorm2d, weights: dict[nn.Conv2d, _Prepared]) -> None:
        self.unit, self.norm_after, self.weights = unit, norm_after, weights

    def forward(self, x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        unit, weights = self.unit, self.weights
        self.x, self.table = x, table
        self.h1 = launch.activate(x, table)
        z = _convolve(self.h1, unit.conv1, weights[unit.conv1].plain)
        self.z, self.table_z = launch.statistics(z, unit.norm2)
        self.h2 = launch.activate(self.z, self.table_z)
        self.entry = self.h1 if unit.activated_skip else x  # where the skip begins
        skip = self.entry
        if unit.shortcut is not None:
            skip = _convolve(self.entry, unit.shortcut, weights[unit.shortcut].plain)
        y = _convolve(self.h2, unit.conv2, weights[unit.conv2].plain)
        return launch.statistics(y, self.norm_after, residual=skip)

    def backward(self, dout: Tensor, gradients: Gradients) -> Tensor:
        unit, weights = self.unit, self.weights
        dh2, gradients[unit.conv2.weight] = _convolve_back(dout, self.h2, unit.conv2, weights[unit.conv2].plain)
        norm2 = launch.gradient_sums(dh2, self.z, self.table_z)
        dz = launch.input_gradient(dh2, self.z, self.table_z, masked=True)
        dh1, gradients[unit.conv1.weight] = _convolve_back(dz, self.h1, unit.conv1, weights[unit.conv1].plain)
        skip = dout
        if unit.shortcut is not None:
            skip, gradients[unit.shortcut.weight] = _convolve_back(
                dout, self.entry, unit.shortcut, weights[unit.shortcut].plain
            )
        if unit.activated_skip:
            dh1 = dh1 + skip
        norm1 = launch.gradient_sums(dh1, self.x, self.table)
        gradients[unit.norm1.weight], gradients[unit.norm1.bias] = norm1
        gradients[unit.norm2.weight], gradients[unit.norm2.bias] = norm2
        residual = None if unit.activated_skip else skip
        return launch.input_gradient(dh1, self.x, self.table, masked=True, residual=residual)


def our_layers(network: Residual, size: tuple[int, int]) -> list[nn.Conv2d]:
    """The 3×3 convolutions that run in our kernels: of 32×32 images, with at most 32 channels."""
    if size != (32, 32):
        return []
    layers = [cast(nn.Conv2d, network.stem)]
    units = cast(list[Unit], list(network.units))
    if units[0].conv1.out_channels == 32:
        layers += [layer for unit in units if unit.conv1.out_channels == 32 for layer in (unit.conv1, unit.conv2)]
    return layers


def _widen(gradients: list[Tensor]) -> list[Tensor]:
    """All in fp32, in one launch: the library's weight gradients come in bf16."""
    half = [gradient for gradient in gradients if gradient.dtype != torch.float32]
    wide = [torch.empty_like(gradient, dtype=torch.float32) for gradient in half]
    torch._foreach_copy_(wide, half)
    replaced = iter(wide)
    return [gradient if gradient.dtype == torch.float32 else next(replaced) for gradient in gradients]


class _Body(torch.autograd.Function):
    """Images → mean of the last activations, (n, channels) fp32."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, network: Residual, *parameters: nn.Parameter) -> Tensor:
        units, stem = cast(list[Unit], list(network.units)), cast(nn.Conv2d, network.stem)
        layers = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
        own = our_layers(network, (images.shape[2], images.shape[3]))
        weights = _prepare(own, [layer for layer in layers if layer not in own])
        norms = [unit.norm1 for unit in units[1:]] + [network.norm]
        pixels = nhwc(images)
        if stem in own:
            x, table, _ = launch.conv(Source("IMAGE", pixels), weights[stem].ahead, units[0].norm1)
        else:
            x, table = launch.statistics(_convolve(pixels, stem, weights[stem].plain), units[0].norm1)
        steps: list[_OwnUnit | _LibraryUnit] = []
        for unit, norm in zip(units, norms, strict=True):
            kind = _OwnUnit if unit.conv1 in own else _LibraryUnit
            steps.append(kind(unit, norm, weights))
            x, table = steps[-1].forward(x, table)
        ctx.kept = (pixels, network, parameters, steps, stem in own, weights[stem].plain, x, table)
        return launch.activate(x, table).mean(dim=(1, 2), dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, dpooled: Tensor) -> tuple[Tensor | None, ...]:
        pixels, network, parameters, steps, own_stem, stem_weight, x, table = ctx.kept
        ctx.kept = None
        gradients: Gradients = {}
        dh = (dpooled / (x.shape[1] * x.shape[2])).to(torch.bfloat16)[:, None, None, :].expand(x.shape).contiguous()
        gradients[network.norm.weight], gradients[network.norm.bias] = launch.gradient_sums(dh, x, table)
        dx = launch.input_gradient(dh, x, table, masked=True)
        for step in reversed(steps):
            dx = step.backward(dx, gradients)
        if own_stem:
            gradients[network.stem.weight] = nchw(launch.weight_gradient(pixels, dx, image=True))[:, :3]
        else:
            _, gradients[network.stem.weight] = _convolve_back(dx, pixels, network.stem, stem_weight)
        return None, None, *_widen([gradients[parameter] for parameter in parameters])


def body(network: Residual, images: Tensor) -> Tensor:
    """What `network` makes of the images just before its head."""
    parameters = [p for name, p in network.named_parameters() if not name.startswith("head.")]
    pooled: Tensor = _Body.apply(images, network, *parameters)  # type: ignore[no-untyped-call]
    return pooled
