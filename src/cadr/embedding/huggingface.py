"""Vision models in Hugging Face's format, by the AutoModel of `transformers`: DINOv2, DINOv3, SigLIP, CLIP, ViT, …"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cadr.embedding.encoder import Encoder, PictureEncoder
from cadr.embedding.items import EXAMPLES, EmbeddingError
from cadr.embedding.preprocessing import FILE, Preprocessing
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason

TOKENIZER = ("tokenizer*.json", "vocab.*", "*.model")  # files that turn texts into numbers
_POOLERS = ("pooler.", "vision_model.head.")  # made up anew where a checkpoint was saved from a classifier


class Pooled(nn.Module):
    """Normalised pixels (n, 3, h, w) to a vector for each picture."""

    def __init__(self, model: Any, pooler: bool) -> None:
        super().__init__()
        self.model, self.pooler = model, pooler
        self.joint = hasattr(model, "get_image_features")  # of a model of pictures and texts, the part for pictures

    def forward(self, pixels: Tensor) -> Tensor:
        found = self.model.get_image_features(pixels) if self.joint else self.model(pixel_values=pixels)
        vectors: Tensor | None = getattr(found, "pooler_output", None)
        if vectors is not None and self.pooler:
            return vectors.flatten(1)
        last: Tensor = found.last_hidden_state
        return last.mean((2, 3)) if last.ndim == 4 else last[:, 0]  # the first token stands for all


def open_pictures(name: str, location: Path, device: torch.device) -> Encoder:
    """An encoder from a folder that `save_pretrained` has written."""
    if not (location / FILE).is_file() and any(any(location.rglob(pattern)) for pattern in TOKENIZER):
        raise EmbeddingError(
            f"{name} is a model of texts, and these are pictures; name one of pictures, such as {EXAMPLES['pictures']}"
        )
    preprocessing = Preprocessing.read(location)
    return PictureEncoder(name, preprocessing, load_vision_model(name, location), device)


def load_vision_model(name: str, location: Path) -> Pooled:
    """The network, in float32; a pooler whose weights are not there is left out."""
    transformers = optional_import("transformers", f"a pretrained model such as {name}", "features")
    with quiet():
        try:
            config = transformers.AutoConfig.from_pretrained(location, local_files_only=True, trust_remote_code=False)
            model, loaded = transformers.AutoModel.from_pretrained(
                location,
                config=without_dropout(config),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except Exception as error:  # a damaged or foreign file can fail in any way at all
            raise EmbeddingError(
                f"{name} cannot be loaded from {location}: {reason(error)}; expected what save_pretrained writes, with "
                "weights in safetensors"
            ) from error
    if model.main_input_name != "pixel_values" and not hasattr(model, "get_image_features"):
        raise EmbeddingError(f"{name} ({type(model).__name__}) is no model of pictures; name one, or give it texts")
    missing = sorted(loaded["missing_keys"])
    if lacking := [key for key in missing if not key.startswith(_POOLERS)]:
        raise EmbeddingError(f"{location} lacks {len(lacking)} weights of {name}, such as {lacking[0]}; save it again")
    return Pooled(model, pooler=not missing)


def without_dropout(config: Any) -> Any:
    """It has no part in features; where the network is trained, a step would not be a function of seed and number."""
    for each in (config, getattr(config, "vision_config", None)):
        for key, value in ({} if each is None else vars(each)).items():
            if "drop" in key and isinstance(value, float):
                setattr(each, key, 0.0)
    return config


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's bars, and its remarks on weights that are missing, which are looked at here."""
    remarks = import_module("transformers.utils.logging")
    level, bars = remarks.get_verbosity(), remarks.is_progress_bar_enabled()
    remarks.set_verbosity(logging.CRITICAL)
    remarks.disable_progress_bar()
    try:
        yield
    finally:
        remarks.set_verbosity(level)
        if bars:
            remarks.enable_progress_bar()
