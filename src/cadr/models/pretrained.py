"""A pretrained vision model, tuned as a whole: `--model hf:NAME`.

Pictures are normalised as its own configuration says, and brought to its own size if they have another. A layer learns
more slowly than the next one: what lies near the pixels is good for all pictures as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cadr.embedding.encoder import PictureEncoder
from cadr.embedding.registry import Pretrained
from cadr.errors import ConfigError
from cadr.models.networks import head
from cadr.utils.options import check_numbers, option

_LAYER = re.compile(r".*?\.\d+(?=\.)")  # the name of the outermost of a row of layers that a parameter is in


@dataclass(frozen=True)
class HuggingFace:
    """A pretrained vision model with a new head, all of it trained; layers near the pixels more slowly."""

    backbone: str = option("", "pretrained model of pictures: its Hugging Face name, or its folder (--model hf:NAME)")
    layer_decay: float = option(0.75, "a layer's learning rate as a share of the next one's; 1: all alike")

    def __post_init__(self) -> None:
        check_numbers(self)
        if not 0.0 < self.layer_decay <= 1.0:
            raise ConfigError(f"layer_decay must be above 0 and at most 1, got {self.layer_decay!r}.")

    def build(self, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        encoder = self._encoder()
        return FineTuned(encoder, num_classes, self.layer_decay)

    @property
    def side(self) -> int:
        """Of the pictures that it takes, in pixels."""
        return max(self._encoder().preprocessing.crop)

    def _encoder(self) -> PictureEncoder:
        if not self.backbone:
            raise ConfigError("The model hf needs the name of a pretrained one, as in hf:facebook/dinov2-small.")
        encoder = Pretrained.find(self.backbone, "cpu").load("pictures")
        if not isinstance(encoder, PictureEncoder):
            raise ConfigError(
                f"{self.backbone} cannot be tuned, as PyTorch does not run it; name a folder that save_pretrained has "
                "written, or use it as it is with --features"
            )
        return encoder


class FineTuned(nn.Module):
    """Normalised pixels (n, 3, h, w) to logits (n, classes)."""

    pixel_mean: Tensor
    pixel_std: Tensor

    def __init__(self, encoder: PictureEncoder, num_classes: int, layer_decay: float) -> None:
        super().__init__()
        how = encoder.preprocessing
        self.size = how.crop
        for name, values in (("pixel_mean", how.mean), ("pixel_std", how.std)):  # of pixels in [0, 1]
            self.register_buffer(name, (torch.tensor(values) / (255 * how.scale)).view(3, 1, 1))
        self.backbone = encoder.network.backbone
        width = self._freeze_unused()
        self.head = head(width, num_classes)
        self.learning_rates = layer_rates([n for n, p in self.named_parameters() if p.requires_grad], layer_decay)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2:] != self.size:
            x = F.interpolate(x, size=self.size, mode="bilinear", align_corners=False)
        logits: Tensor = self.head(self.backbone(x))
        return logits

    def _freeze_unused(self) -> int:
        """Freeze what takes no part in the features, as a text model beside does; returns how many features there are.

        Its gradient would be nothing, but its weights would decay.
        """
        features: Tensor = self.backbone.eval()(torch.zeros(1, 3, *self.size))
        trained = [p for p in self.backbone.parameters() if p.requires_grad]
        gradients = torch.autograd.grad(features.sum(), trained, allow_unused=True)
        for parameter, gradient in zip(trained, gradients, strict=True):
            parameter.requires_grad_(gradient is not None)
        return features.shape[1]


def layer_rates(names: list[str], decay: float) -> dict[str, float]:
    """Each parameter's share of the learning rate, by how many layers lie between it and the classes.

    Parameters before the first of the numbered layers are a layer of their own, and so are those behind the last.
    """
    depth: dict[str, int] = {}
    layers: dict[str, int] = {}
    for name in names:
        found = _LAYER.match(name)
        if found is not None:
            depth[name] = layers.setdefault(found[0], len(layers) + 1)
        else:
            depth[name] = -1 if layers else 0
    last = len(layers) + 1
    return {name: decay ** (last - d if d >= 0 else 0) for name, d in depth.items()}
