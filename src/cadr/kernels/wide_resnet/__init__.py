"""Wide residual networks written out for Hopper GPUs: the same function as the plain module, faster."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cadr.models.networks import Residual
from cadr.models.synced_norm import Synced


def fits(model: nn.Module) -> bool:
    """Whether the kernels can hold this network: in them a thread keeps to eight channels, so the number of channels
    must divide evenly among threads, and their sums have room for 1,024."""
    if not isinstance(model, Residual) or not isinstance(model.stem, nn.Conv2d):
        return False
    norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    if any(isinstance(layer, Synced) for layer in norms):  # their moments are of other ranks' rows, too
        return False
    channels = {layer.num_features for layer in norms}
    return channels <= {16, 32, 64, 128, 256, 512, 1024}


def available(model: nn.Module, device: torch.device) -> bool:
    """Whether this network has a written-out form on this device."""
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.cuda.get_device_capability(device) == (9, 0)
        and fits(model)
    )


def applies(model: nn.Module, images: Tensor) -> bool:
    """Whether `logits` can take the place of this call of the model."""
    return (
        model.training
        and images.dtype == torch.bfloat16
        and images.is_contiguous(memory_format=torch.channels_last)
        and available(model, images.device)
    )


def logits(model: nn.Module, images: Tensor) -> Tensor:
    """The model's logits in training mode, fp32; batch norm's running statistics are updated as usual."""
    from cadr.kernels.wide_resnet.body import body

    assert isinstance(model, Residual)
    out: Tensor = model.head(body(model, images))
    return out
