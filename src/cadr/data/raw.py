"""Pictures and texts as people have them, of data that are learned from as vectors: what is embedded, and shown."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.images import ImageError, check_readable, decode
from cadr.embedding.items import KEY, Modality, Vectors
from cadr.errors import CadrError, DataError
from cadr.utils.text import reason, shown

if TYPE_CHECKING:
    from cadr.embedding.registry import Pretrained


@dataclass(frozen=True, eq=False)
class PictureFiles:
    """Pictures of any size, each in a file."""

    paths: tuple[Path, ...]
    modality: Modality = "pictures"

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: slice) -> PictureFiles:
        return PictureFiles(self.paths[rows])

    def key(self, row: int) -> bytes:
        try:
            with self.paths[row].open("rb") as file:
                return hashlib.file_digest(file, "sha256").digest()[:KEY]
        except OSError as error:
            raise ImageError(f"{shown(self.paths[row])} cannot be read: {error.strerror or reason(error)}") from error

    def read(self, row: int, detail: int | None = None) -> NDArray[np.uint8]:
        return decode(self.paths[row], least=detail)

    def refuse(self, failures: Sequence[tuple[int, CadrError]]) -> None:
        check_readable([(self.paths[row], ImageError(str(error))) for row, error in failures], len(self))


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures of one size in an array."""

    array: NDArray[np.uint8]  # (n, h, w, 3)
    modality: Modality = "pictures"

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: slice) -> Pictures:
        return Pictures(self.array[rows])

    def key(self, row: int) -> bytes:
        picture = self.array[row]
        return hashlib.sha256(repr(picture.shape).encode() + np.ascontiguousarray(picture).tobytes()).digest()[:KEY]

    def read(self, row: int, detail: int | None = None) -> NDArray[np.uint8]:
        return np.asarray(self.array[row])

    def refuse(self, failures: Sequence[tuple[int, CadrError]]) -> None:
        _raise_first(failures)


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts in memory."""

    texts: tuple[str, ...]
    modality: Modality = "texts"

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: slice) -> Texts:
        return Texts(self.texts[rows])

    def key(self, row: int) -> bytes:
        return hashlib.sha256(self.texts[row].encode(errors="surrogatepass")).digest()[:KEY]

    def read(self, row: int, detail: int | None = None) -> str:
        return self.texts[row]

    def refuse(self, failures: Sequence[tuple[int, CadrError]]) -> None:
        _raise_first(failures)


Raw = PictureFiles | Pictures | Texts


@dataclass(frozen=True, eq=False)
class Embedded:
    """How the examples of a pool became vectors."""

    model: str  # a hash of the pretrained model
    contents: str  # a hash of all that was embedded: the vectors themselves may differ a little from machine to machine
    raw: Raw  # what was embedded, row by row; of several columns of texts the first
    in_columns: bool = False  # of a table, whose rows may hold more than that


def embed(pretrained: Pretrained, raw: Raw) -> Vectors:
    """float32 (n, d), a row for each."""
    from cadr.embedding import embed as embedding  # here, as it brings torch along

    return embedding.embed(pretrained, raw)


def embed_pool(pretrained: Pretrained, *parts: Raw) -> tuple[list[Vectors], Embedded]:
    """The same of all that a pool is made of, the examples first, and how it was done."""
    from cadr.embedding import embed as embedding

    keys = [embedding.keys_of(part) for part in parts]
    contents = hashlib.sha256(b"".join(key for part in keys for key in part)).hexdigest()
    found = [embedding.embed(pretrained, part, known) for part, known in zip(parts, keys, strict=True)]
    return found, Embedded(pretrained.fingerprint, contents, parts[0])


def raw_of(name: str, values: Any) -> Raw:
    """What somebody holds in memory: pictures in a uint8 array, paths of pictures, or texts."""
    if isinstance(values, np.ndarray) and values.dtype == np.uint8 and values.ndim == 4 and values.shape[-1] == 3:
        return Pictures(values)
    each = list(values)
    if each and all(isinstance(value, Path) for value in each):
        return PictureFiles(tuple(each))
    if each and all(isinstance(value, str) for value in each):
        return Texts(tuple(map(str, each)))
    raise DataError(
        f"{name}: expected texts, paths (of type Path) of pictures, or uint8 pictures (n, height, width, 3), "
        f"got {type(values).__name__} of {type(each[0]).__name__ if each else 'nothing'}"
    )


def _raise_first(failures: Sequence[tuple[int, CadrError]]) -> None:
    for _, error in failures:
        raise error
