"""A wide residual network's forward and backward pass, written out.

The same mathematics as `networks.Residual` in training mode under bf16: most convolutions of the first stages run in
our own kernels with batch norm, activation, residual sum and statistics folded in (with few channels the library's
convolutions and the passes between them cost several times the memory traffic they need); the others run in cuDNN
between fused normalisation kernels. So a unit runs in our kernels, in the library's, or half and half.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from cadr.kernels.cuda_stream import DeferredGradients
from cadr.kernels.wide_resnet import convolutions, library, norms
from cadr.kernels.wide_resnet.convolutions import ConvInput, conv, on_warpgroups, weight_gradient
from cadr.kernels.wide_resnet.library import convolve, nchw, nhwc, pointwise
from cadr.kernels.wide_resnet.weights import PreparedWeights, prepare
from cadr.models.networks import Residual, Unit

Gradients = dict[Tensor, Tensor]  # by parameter


def _weight_gradient(h: ConvInput, dz: Tensor) -> Tensor:
    return nchw(convolutions.weight_gradient(h, dz))


def _activated_conv(
    z: Tensor,
    table: Tensor,
    layer: nn.Conv2d,
    weights: PreparedWeights,
    norm: nn.BatchNorm2d,
    *,
    residual: Tensor | None = None,
) -> tuple[Tensor, Tensor, ConvInput]:
    """Output, its table, and how the gradient of the weights reads what went in: kept, or to be activated again."""
    source = ConvInput("ACTIVATED", z, table)
    keep = not convolutions.rebuilds(z.shape[1], layer.in_channels, layer.out_channels)
    out, out_table, _ = conv(source, weights.ahead, norm, residual=residual, keep=keep)
    return out, out_table, source.kept if keep else source


def _activated(unit: Unit, x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """What the first convolution reads, and where the skip begins: there, or at x, of which a 1×1 convolution with
    stride 2 reads every second pixel of every second row."""
    if unit.shortcut is not None and unit.shortcut.stride == (2, 2):
        assert not unit.activated_skip
        return norms.activate_and_halve(x, table)
    h = norms.activate(x, table)
    return h, h if unit.activated_skip else x


def _as_source(gradient: Tensor | ConvInput) -> ConvInput:
    return gradient if isinstance(gradient, ConvInput) else ConvInput("PLAIN", gradient)


class _Written:
    def __init__(self, unit: Unit, norm_after: nn.BatchNorm2d, weights: dict[nn.Conv2d, PreparedWeights]) -> None:
        self.unit, self.norm_after, self.weights = unit, norm_after, weights


class OwnUnit(_Written):
    """A stride-1 unit in our kernels. The skip of the first is activated and widened by a 1×1 convolution."""

    joins = False  # whether the unit before reads the last sum of the way back from its parts

    def forward(self, x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        unit, weights = self.unit, self.weights
        self.x, self.table = x, table
        self.z, self.table_z, self.h1 = _activated_conv(x, table, unit.conv1, weights[unit.conv1], unit.norm2)
        assert unit.activated_skip == (unit.shortcut is not None)
        skip = x
        if unit.shortcut is not None:
            assert self.h1.how == "PLAIN"  # a unit that widens keeps what it has activated
            skip = pointwise(self.h1.tensor, weights[unit.shortcut])
        out, out_table, self.h2 = _activated_conv(
            self.z, self.table_z, unit.conv2, weights[unit.conv2], self.norm_after, residual=skip
        )
        return out, out_table

    def backward(
        self, gradient: Tensor | ConvInput, gradients: Gradients, aside: DeferredGradients
    ) -> Tensor | ConvInput:
        unit, weights = self.unit, self.weights
        entry = _as_source(gradient)
        g2, _, norm2 = conv(entry, weights[unit.conv2].back, unit.norm2, z=self.z, table=self.table_z)
        dout = entry.rebuilt
        aside.add(unit.conv2.weight, _weight_gradient, self.h2, dout)
        extra = None
        if unit.shortcut is not None:
            extra = library.pointwise_input_gradient(dout, weights[unit.shortcut])
            aside.add(unit.shortcut.weight, library.pointwise_weight_gradient, dout, self.h1.tensor)
        dz = ConvInput("GRADIENT", g2, self.table_z, self.z)
        g1, _, norm1 = conv(dz, weights[unit.conv1].back, unit.norm1, z=self.x, table=self.table, residual=extra)
        aside.add(unit.conv1.weight, _weight_gradient, self.h1, dz.rebuilt)
        gradients[unit.norm1.weight], gradients[unit.norm1.bias] = norm1
        gradients[unit.norm2.weight], gradients[unit.norm2.bias] = norm2
        if self.joins:
            return ConvInput("JOINED", g1, self.table, self.x, dout)
        skip = dout if unit.shortcut is None else None
        return norms.input_gradient(g1, self.x, self.table, masked=False, residual=skip)


class EntryUnit(_Written):
    """The first unit of a stage: its stride-2 and 1×1 convolutions are the library's, the other is ours."""

    def forward(self, x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        unit, weights = self.unit, self.weights
        assert unit.shortcut is not None
        self.x, self.table = x, table
        self.h1, self.entry = _activated(unit, x, table)
        z = convolve(self.h1, unit.conv1, weights[unit.conv1].ahead)
        self.z, self.table_z = norms.statistics(z, unit.norm2)
        skip = pointwise(self.entry, weights[unit.shortcut])
        out, out_table, self.h2 = _activated_conv(
            self.z, self.table_z, unit.conv2, weights[unit.conv2], self.norm_after, residual=skip
        )
        return out, out_table

    def backward(self, gradient: Tensor | ConvInput, gradients: Gradients, aside: DeferredGradients) -> Tensor:
        unit, weights = self.unit, self.weights
        assert unit.shortcut is not None
        entry = _as_source(gradient)
        g2, _, norm2 = conv(entry, weights[unit.conv2].back, unit.norm2, z=self.z, table=self.table_z)
        dout = entry.rebuilt
        aside.add(unit.conv2.weight, _weight_gradient, self.h2, dout)
        dz = norms.input_gradient(g2, self.z, self.table_z, masked=False)
        first = (dz, self.h1, unit.conv1, weights[unit.conv1])
        dh1, skip = library.input_gradient(*first), library.pointwise_input_gradient(dout, weights[unit.shortcut])
        aside.add(unit.conv1.weight, library.weight_gradient, *first)
        aside.add(unit.shortcut.weight, library.pointwise_weight_gradient, dout, self.entry)
        norm1 = norms.gradient_sums(dh1, self.x, self.table)
        gradients[unit.norm1.weight], gradients[unit.norm1.bias] = norm1
        gradients[unit.norm2.weight], gradients[unit.norm2.bias] = norm2
        return norms.input_gradient(dh1, self.x, self.table, masked=True, residual=skip)


class LibraryUnit(_Written):
    """A unit whose convolutions are the library's, with our normalisation between them."""

    def forward(self, x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        unit, weights = self.unit, self.weights
        self.x, self.table = x, table
        self.h1, self.entry = _activated(unit, x, table)
        z = convolve(self.h1, unit.conv1, weights[unit.conv1].ahead)
        self.z, self.table_z = norms.statistics(z, unit.norm2)
        self.h2 = norms.activate(self.z, self.table_z)
        skip = self.entry if unit.shortcut is None else pointwise(self.entry, weights[unit.shortcut])
        y = convolve(self.h2, unit.conv2, weights[unit.conv2].ahead)
        return norms.statistics(y, self.norm_after, residual=skip)

    def backward(self, gradient: Tensor | ConvInput, gradients: Gradients, aside: DeferredGradients) -> Tensor:
        unit, weights = self.unit, self.weights
        assert isinstance(gradient, Tensor)
        dout = gradient
        second = (dout, self.h2, unit.conv2, weights[unit.conv2])
        dh2 = library.input_gradient(*second)
        aside.add(unit.conv2.weight, library.weight_gradient, *second)
        norm2 = norms.gradient_sums(dh2, self.z, self.table_z)
        dz = norms.input_gradient(dh2, self.z, self.table_z, masked=True)
        first = (dz, self.h1, unit.conv1, weights[unit.conv1])
        dh1 = library.input_gradient(*first)
        aside.add(unit.conv1.weight, library.weight_gradient, *first)
        skip = dout
        if unit.shortcut is not None:
            skip = library.pointwise_input_gradient(dout, weights[unit.shortcut])
            aside.add(unit.shortcut.weight, library.pointwise_weight_gradient, dout, self.entry)
        if unit.activated_skip:
            dh1 = dh1 + skip
        norm1 = norms.gradient_sums(dh1, self.x, self.table)
        gradients[unit.norm1.weight], gradients[unit.norm1.bias] = norm1
        gradients[unit.norm2.weight], gradients[unit.norm2.bias] = norm2
        residual = None if unit.activated_skip else skip
        return norms.input_gradient(dh1, self.x, self.table, masked=True, residual=residual)


WrittenUnit = OwnUnit | EntryUnit | LibraryUnit


def our_layers(network: Residual, size: tuple[int, int]) -> list[nn.Conv2d]:
    """The 3×3 convolutions that run in our kernels: of 32×32 images, the stem and the shapes cut for warpgroups."""
    if size != (32, 32):
        return []
    layers, side = [cast(nn.Conv2d, network.stem)], size[0]
    for unit in cast(list[Unit], list(network.units)):
        side //= unit.conv1.stride[0]
        layers += [
            layer
            for layer in (unit.conv1, unit.conv2)
            if layer.stride == (1, 1) and on_warpgroups(side, layer.in_channels, layer.out_channels)
        ]
    return layers


def _write_out(
    unit: Unit, norm: nn.BatchNorm2d, own: list[nn.Conv2d], weights: dict[nn.Conv2d, PreparedWeights]
) -> WrittenUnit:
    if unit.conv1 in own:
        return OwnUnit(unit, norm, weights)
    return EntryUnit(unit, norm, weights) if unit.conv2 in own else LibraryUnit(unit, norm, weights)


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
        weights = prepare(own, [layer for layer in layers if layer not in own])
        following = [unit.norm1 for unit in units[1:]] + [network.norm]
        pixels = nhwc(images)
        if stem in own:
            x, table, _ = conv(ConvInput("IMAGE", pixels), weights[stem].ahead, units[0].norm1)
        else:
            x, table = norms.statistics(library.convolve(pixels, stem, weights[stem].ahead), units[0].norm1)
        written: list[WrittenUnit] = []
        for unit, norm in zip(units, following, strict=True):
            step = _write_out(unit, norm, own, weights)
            if isinstance(step, OwnUnit):
                step.joins = bool(written) and written[-1].unit.conv2 in own
            x, table = step.forward(x, table)
            written.append(step)
        ctx.kept = (pixels, network, parameters, written, stem in own, weights[stem], x, table)
        return norms.activate(x, table).mean(dim=(1, 2), dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, dpooled: Tensor) -> tuple[Tensor | None, ...]:
        pixels, network, parameters, written, own_stem, stem_weights, x, table = ctx.kept
        ctx.kept = None
        gradients: Gradients = {}
        dh = (dpooled / (x.shape[1] * x.shape[2])).to(torch.bfloat16)  # the same for all pixels of an image
        gradients[network.norm.weight], gradients[network.norm.bias] = norms.gradient_sums(dh, x, table)
        dx = norms.input_gradient(dh, x, table, masked=True)
        aside = DeferredGradients(x.device)
        for step in reversed(written):
            dx = step.backward(dx, gradients, aside)
        assert isinstance(dx, Tensor)
        if own_stem:
            gradients[network.stem.weight] = nchw(weight_gradient(ConvInput("IMAGE", pixels), dx))[:, :3]
        else:
            gradients[network.stem.weight] = library.weight_gradient(dx, pixels, network.stem, stem_weights)
        gradients |= aside.join()
        return None, None, *_widen([gradients[parameter] for parameter in parameters])


def body(network: Residual, images: Tensor) -> Tensor:
    """What `network` makes of the images just before its head."""
    parameters = [p for name, p in network.named_parameters() if not name.startswith("head.")]
    pooled: Tensor = _Body.apply(images, network, *parameters)  # type: ignore[no-untyped-call]
    return pooled
