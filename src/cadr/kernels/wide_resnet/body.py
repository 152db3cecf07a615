"""A wide residual network's forward and backward pass, written out.

The same mathematics as `parts.Residual` in training mode under bf16: most convolutions of the first stages run in our
own kernels with batch norm, activation, residual sum and statistics folded in (with few channels the library's
convolutions and the passes between them cost several times the memory traffic they need); the others run in cuDNN
between fused normalisation kernels.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from cadr.kernels.wide_resnet import library, norms
from cadr.kernels.wide_resnet.convolutions import conv, on_warpgroups
from cadr.kernels.wide_resnet.deferred_wgrads import DeferredGradients
from cadr.kernels.wide_resnet.library import nchw, nhwc
from cadr.kernels.wide_resnet.source import Source
from cadr.kernels.wide_resnet.units import EntryUnit, Gradients, LibraryUnit, OwnUnit, WrittenUnit
from cadr.kernels.wide_resnet.weight_gradients import weight_gradient
from cadr.kernels.wide_resnet.weights import Prepared, prepare
from cadr.models.layers import Residual, Unit


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
    unit: Unit, norm: nn.BatchNorm2d, own: list[nn.Conv2d], weights: dict[nn.Conv2d, Prepared]
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
            x, table, _ = conv(Source("IMAGE", pixels), weights[stem].ahead, units[0].norm1)
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
            gradients[network.stem.weight] = nchw(weight_gradient(Source("IMAGE", pixels), dx))[:, :3]
        else:
            gradients[network.stem.weight] = library.weight_gradient(dx, pixels, network.stem, stem_weights)
        gradients |= aside.join()
        return None, None, *_widen([gradients[parameter] for parameter in parameters])


def body(network: Residual, images: Tensor) -> Tensor:
    """What `network` makes of the images just before its head."""
    parameters = [p for name, p in network.named_parameters() if not name.startswith("head.")]
    pooled: Tensor = _Body.apply(images, network, *parameters)  # type: ignore[no-untyped-call]
    return pooled
