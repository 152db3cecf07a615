"""ONNX files, through onnxruntime: models of pictures, and models of tokenised texts with their tokenizer beside them.

Pictures: one input of four axes. Floating point is (n, 3, h, w), normalised as the `preprocessor_config.json` beside
the file (or one folder up) says; uint8 is (n, h, w, 3), of the size that the file states.
Texts: `input_ids` and perhaps `attention_mask` and `token_type_ids`, by the `tokenizer.json` beside the file (or one
folder up). Of the outputs one that is called an embedding is taken, else the first. What it says of every token is
averaged, or the first token's is taken where `1_Pooling/config.json` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cadr.embedding.encoder import Encoder, checked
from cadr.embedding.items import EmbeddingError, Modality, Vectors
from cadr.embedding.preprocessing import FILE, Preprocessing
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason
from cadr.utils.untrusted import parse_json, read_text

_EMBEDDINGS = ("sentence_embedding", "image_embeds", "text_embeds", "embeddings", "pooler_output")
_LONGEST = 512  # tokens, where nothing says how many a model reads
_FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
_TOKENS = {"input_ids", "attention_mask", "token_type_ids"}


class _OnnxEncoder(Encoder):
    def __init__(self, name: str, session: Any) -> None:
        super().__init__(name)
        self.session, self.inputs = session, session.get_inputs()
        if self.inputs[0].shape[0] == 1:  # exported for one at a time
            self.batch = 1
        outputs = [output.name for output in session.get_outputs()]
        self.output = next((known for known in _EMBEDDINGS if known in outputs), outputs[0])

    def _run(self, feed: dict[str, NDArray[Any]]) -> NDArray[Any]:
        try:
            found: NDArray[Any] = self.session.run([self.output], feed)[0]
        except Exception as error:
            raise EmbeddingError(f"{self.name} cannot be run on {self.modality}: {reason(error)}") from error
        return found


class OnnxPictures(_OnnxEncoder):
    """Pictures of any size."""

    modality: Modality = "pictures"

    def __init__(self, name: str, path: Path, session: Any) -> None:
        super().__init__(name, session)
        (self.input,) = self.inputs
        settings = _beside(path, FILE)
        self.raw = self.input.type == "tensor(uint8)"
        if settings is not None:
            self.preprocessing = Preprocessing.read(settings.parent)
        elif self.raw and all(isinstance(side, int) for side in self.input.shape[1:3]):
            height, width = self.input.shape[1:3]
            self.preprocessing = Preprocessing((height, width), (height, width))
        else:
            self.preprocessing = Preprocessing.read(path.parent)  # which says that the file is not there
        self.detail = self.preprocessing.detail

    def fit(self, raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return self.preprocessing.fit(raw)

    def encode(self, batch: Sequence[NDArray[np.uint8]]) -> Vectors:
        x, how = np.stack(batch), self.preprocessing
        if not self.raw:
            mean, std = (np.array(values, dtype=np.float32) for values in (how.mean, how.std))
            x = ((x * np.float32(how.scale) - mean) / std).transpose(0, 3, 1, 2).astype(_FLOATS[self.input.type])
        found = self._run({self.input.name: x})
        if found.ndim == 4:
            found = found.mean((2, 3))
        return checked(self.name, found[:, 0] if found.ndim == 3 else found)


class OnnxTexts(_OnnxEncoder):
    """Texts, by the tokenizer beside the file."""

    modality: Modality = "texts"

    def __init__(self, name: str, path: Path, session: Any) -> None:
        super().__init__(name, session)
        tokenizer = _beside(path, "tokenizer.json")
        if tokenizer is None:
            raise EmbeddingError(
                f"{path} takes tokens, and there is no tokenizer.json in its folder to make them of texts; put the "
                "model's own there"
            )
        library = optional_import("tokenizers", f"the tokenizer of {name}", "features")
        try:
            self.tokenizer = library.Tokenizer.from_file(str(tokenizer))
        except Exception as error:
            raise EmbeddingError(f"{tokenizer} cannot be used: {reason(error)}; save the tokenizer again") from error
        most = int(_setting(path, "sentence_bert_config.json", "max_seq_length") or _LONGEST)
        self.tokenizer.enable_truncation(most)
        self.tokenizer.enable_padding(**(self.tokenizer.padding or {}) | {"length": None})
        self.first = bool(_setting(path, "1_Pooling/config.json", "pooling_mode_cls_token"))

    def encode(self, batch: Sequence[str]) -> Vectors:
        tokens = self.tokenizer.encode_batch(list(batch))
        columns = {
            "input_ids": [token.ids for token in tokens],
            "attention_mask": [token.attention_mask for token in tokens],
            "token_type_ids": [token.type_ids for token in tokens],
        }
        found = self._run({each.name: np.array(columns[each.name], dtype=np.int64) for each in self.inputs})
        if found.ndim == 3:
            seen = np.array(columns["attention_mask"], dtype=np.float32)[..., None]
            found = found[:, 0] if self.first else (found * seen).sum(1) / seen.sum(1).clip(1)
        return checked(self.name, found)


def open_onnx(name: str, location: Path, device: torch.device) -> Encoder:
    """An encoder from an `.onnx` file."""
    runtime = optional_import("onnxruntime", f"the model {name}", "onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    wanted = ["CUDAExecutionProvider"] if device.type == "cuda" else []
    providers = [*(p for p in wanted if p in runtime.get_available_providers()), "CPUExecutionProvider"]
    try:
        session = runtime.InferenceSession(str(location), options, providers=providers)
    except Exception as error:  # a damaged file can fail in any way at all
        raise EmbeddingError(f"{location} cannot be opened as an ONNX model: {reason(error)}") from error
    inputs = session.get_inputs()
    if len(inputs) == 1 and len(inputs[0].shape) == 4 and inputs[0].type in (*_FLOATS, "tensor(uint8)"):
        return OnnxPictures(name, location, session)
    if {each.name for each in inputs} <= _TOKENS and inputs[0].type == "tensor(int64)":
        return OnnxTexts(name, location, session)
    taken = ", ".join(f"{each.name} {each.type} {each.shape}" for each in inputs)
    raise EmbeddingError(
        f"{location} takes {taken}; expected one input of pictures with four axes, or input_ids and attention_mask"
    )


def _beside(path: Path, name: str) -> Path | None:
    """A file that belongs to the model, in its folder or, where that is the `onnx/` of a larger one, above it."""
    folders = (path.parent, path.parent.parent) if path.parent.name == "onnx" else (path.parent,)
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _setting(path: Path, file: str, key: str) -> Any:
    found = _beside(path, file)
    if found is None:
        return None
    try:
        return parse_json(read_text(found))[key]
    except (OSError, ValueError, KeyError, TypeError):
        return None
