"""A hash of a model by what its files hold, so that vectors of another model are never taken for this one's."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cadr.embedding.errors import EmbeddingError

_KINDS = (".json", ".safetensors", ".txt", ".model", ".onnx")  # settings, weights, and the words of a tokenizer
_BESIDE = (".json", ".data", ".onnx_data")  # what an .onnx file may need of its folder


def model_hash(location: Path) -> str:
    """Of a folder every file that a model is made of; of a file itself, and of an .onnx file what lies beside it."""
    try:
        if location.is_dir():
            files = [path for path in location.rglob("*") if path.suffix in _KINDS and path.is_file()]
            return _hash(location, files)
        beside = [path for path in location.parent.iterdir() if path.suffix in _BESIDE and path.is_file()]
        return _hash(location.parent, [location, *(beside if location.suffix == ".onnx" else [])])
    except OSError as error:
        raise EmbeddingError(f"{error.filename or location} cannot be read: {error.strerror}") from error


def _hash(root: Path, files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        with path.open("rb") as file:
            contents = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()}\0{contents}\n".encode())
    return digest.hexdigest()
