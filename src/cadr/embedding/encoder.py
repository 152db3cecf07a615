"""What turns pictures or texts into vectors: a pretrained network with all that goes before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cadr.embedding.items import EmbeddingError, Modality, Vectors
from cadr.embedding.preprocessing import Preprocessing

_ON_A_CPU = 8  # pictures at a time: what a layer makes of 32 is memory that a processor has to fetch again


class Encoder(ABC):
    """A pretrained model, by the name that somebody gave it, ready to encode."""

    modality: Modality
    batch = 32  # encoded together
    detail: int | None = None  # of pictures: the shortest side below which they show less than the network can see

    def __init__(self, name: str) -> None:
        self.name = name

    def fit(self, raw: Any) -> Any:
        """One picture or text as it goes into a batch; called from several threads."""
        return raw

    @abstractmethod
    def encode(self, batch: Sequence[Any]) -> Vectors:
        """float32 (n, d) of what `fit` returned."""


class Opener(Protocol):
    """How a kind of model is opened; `location` is its file or folder."""

    def __call__(self, name: str, location: Path, device: torch.device) -> Encoder: ...


class PictureEncoder(Encoder):
    """uint8 pictures of any size, through a network that takes uint8 pictures of one."""

    modality: Modality = "pictures"

    def __init__(self, name: str, preprocessing: Preprocessing, backbone: nn.Module, device: torch.device) -> None:
        super().__init__(name)
        self.preprocessing, self.device, self.detail = preprocessing, device, preprocessing.detail
        network = PixelNetwork(backbone, preprocessing).to(device).eval()
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def fit(self, raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return self.preprocessing.fit(raw)

    @torch.inference_mode()
    def encode(self, batch: Sequence[NDArray[np.uint8]]) -> Vectors:
        x = torch.from_numpy(np.stack(batch)).to(self.device)
        together = _ON_A_CPU if self.device.type == "cpu" else len(x)
        with half_precision(self.device):
            vectors = torch.cat([self.network(part) for part in torch.split(x, together)])
        return checked(self.name, vectors.float().cpu().numpy())


class PixelNetwork(nn.Module):
    """uint8 (n, height, width, 3) to vectors (n, d): the model's arithmetic on pixels, then the model."""

    mean: Tensor
    std: Tensor

    def __init__(self, backbone: nn.Module, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.backbone, self.scale = backbone, preprocessing.scale
        self.register_buffer("mean", torch.tensor(preprocessing.mean).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(preprocessing.std).view(3, 1, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        x = pictures.permute(0, 3, 1, 2).to(torch.float32) * self.scale
        vectors: Tensor = self.backbone((x - self.mean) / self.std)
        return vectors


def half_precision(device: torch.device) -> torch.autocast:
    """On a GPU twice as fast and more; on a CPU nothing."""
    return torch.autocast(device.type, torch.float16, enabled=device.type == "cuda")


def checked(name: str, vectors: NDArray[Any]) -> Vectors:
    """Vectors as they should be: one for each row, and of finite numbers."""
    if vectors.ndim != 2:
        raise EmbeddingError(f"{name} returns arrays of shape {vectors.shape}; expected a vector for each row")
    if not np.isfinite(vectors).all():
        raise EmbeddingError(f"{name} returns numbers that are not finite; its weights may be damaged")
    return np.ascontiguousarray(vectors, dtype=np.float32)
