"""Pictures and texts as people have them, of data that are learned from as vectors: what is embedded, and shown."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cadr.data.sources.images import SUFFIXES, ImageError, check_readable, decode, pixels
from cadr.embedding.items import EXAMPLES, KEY, Modality, Vectors
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
    """Pictures in memory, of one size in an array or of many in a tuple."""

    array: NDArray[np.uint8] | tuple[NDArray[np.uint8], ...]  # of (h, w, 3)
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
    """What somebody holds in memory: texts, or pictures as paths, as images of Pillow or as uint8 arrays.

    Strings are texts, unless all of them end as the names of pictures do.
    """
    if isinstance(values, np.ndarray) and _is_pixels(values, 4):
        return Pictures(values)
    try:
        each = list(values)
    except TypeError:  # one value alone
        each = []
    if each and all(isinstance(value, Path) for value in each):
        return PictureFiles(tuple(each))
    if each and all(isinstance(value, str) for value in each):
        if all(map(_is_file, each)):
            return PictureFiles(tuple(map(Path, each)))
        return Texts(tuple(map(str, each)))
    if each and all(isinstance(value, Image.Image) for value in each):
        return Pictures(tuple(pixels(f"{name}, row {row}", image) for row, image in enumerate(each)))
    if each and all(_is_pixels(value, 3) for value in each):
        return Pictures(tuple(each))
    raise DataError(
        f"{name}: expected texts, or pictures as paths, as images of Pillow or as uint8 arrays (height, width, 3), "
        f"got {type(values).__name__} of {type(each[0]).__name__ if each else 'nothing'}"
    )


def check_not_raw(name: str, values: Any) -> None:
    """Refuse texts and pictures where no pretrained model is named for them."""
    if hasattr(values, "columns") or getattr(values, "ndim", 1) != 1 or not hasattr(values, "__iter__"):
        return
    first = next(iter(values), None)
    if not isinstance(first, str | Path | Image.Image):
        return
    what: Modality = "texts" if isinstance(first, str) and not _is_file(first) else "pictures"
    raise DataError(
        f"{name} holds {what}, which are learned from through a pretrained model: give features=NAME, such as "
        f"{EXAMPLES[what]}"
    )


def _is_file(text: str) -> bool:
    return text.lower().endswith(tuple(SUFFIXES))


def _is_pixels(value: Any, axes: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == axes and value.shape[-1] == 3


def _raise_first(failures: Sequence[tuple[int, CadrError]]) -> None:
    for _, error in failures:
        raise error
