"""Text models: what sentence-transformers has saved, or any model of texts in `transformers`, tokens averaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from cadr.embedding.encoder import Encoder, checked, half_precision
from cadr.embedding.huggingface import TOKENIZER, quiet
from cadr.embedding.items import EmbeddingError, Modality, Vectors
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason


class TextEncoder(Encoder):
    """Texts through a model with its own tokenizer, pooling and normalisation, as its folder has them."""

    modality: Modality = "texts"
    batch = 256  # sorted by length together, which saves padding

    def __init__(self, name: str, location: Path, device: torch.device) -> None:
        super().__init__(name)
        library = optional_import("sentence_transformers", f"a model of texts such as {name}", "features")
        if not any(any(location.rglob(pattern)) for pattern in TOKENIZER):
            raise EmbeddingError(
                f"{location} holds no tokenizer, without which {name} cannot read texts; save the tokenizer there, too"
            )
        with quiet():
            try:
                self.model = library.SentenceTransformer(
                    str(location),
                    device=str(device),
                    local_files_only=True,
                    trust_remote_code=False,
                    model_kwargs={"use_safetensors": True, "dtype": torch.float32},
                )
            except Exception as error:  # a damaged or foreign file can fail in any way at all
                raise EmbeddingError(
                    f"{name} cannot be loaded from {location} as a model of texts: {reason(error)}; expected what "
                    "sentence-transformers or save_pretrained writes, with weights in safetensors"
                ) from error
        self.device = device

    def encode(self, batch: Sequence[str]) -> Vectors:
        with half_precision(self.device):
            vectors = self.model.encode(list(batch), batch_size=32, show_progress_bar=False, convert_to_numpy=True)
        return checked(self.name, vectors)


def open_texts(name: str, location: Path, device: torch.device) -> Encoder:
    """An encoder from a model's folder."""
    return TextEncoder(name, location, device)
