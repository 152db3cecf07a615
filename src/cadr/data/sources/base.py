"""What a format of data is to everybody else: it opens a pool to train on, and blocks of rows to predict on.

A format is a module with the names of `Format`; to add one, write it and list it in `registry.py`. What can be trained
on can be predicted on, with or without labels: some rows at a time in their own order, so that millions need no more
memory than thousands. Columns of a table that the model does not know are kept, and come back beside the predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.raw import Raw, embed
from cadr.data.sources.columns import Column
from cadr.data.sources.labels import Names
from cadr.data.sources.parsing import UnknownCategories
from cadr.embedding.items import Modality, Vectors
from cadr.errors import DataError
from cadr.utils.text import counted

if TYPE_CHECKING:
    from cadr.embedding.registry import Pretrained

Kind = Literal["image", "features"]


class PredictionDataError(DataError):
    """Data to predict on are not like those the model was trained on."""


@dataclass(frozen=True)
class Options:
    """What can be said about data beside their name."""

    labels: Path | None = None  # a file of labels
    label_column: str = "label"
    image_size: int | None = None
    ignore_columns: tuple[str, ...] = ()
    weight_column: str | None = None  # of a table: for how many rows each one counts
    features: Pretrained | None = None  # by which pictures and texts become vectors
    text_column: str | None = None  # of a table, which is a text whatever it looks like


@dataclass(frozen=True)
class Wanted:
    """What the model takes, and what its classes are called."""

    shape: tuple[int, ...]  # of an example: (h, w, 3) or (d,)
    class_names: tuple[str, ...]
    columns: tuple[Column, ...] | None = None  # of the table that was trained on; None: it was no table
    label_column: str = "label"
    image_size: int | None = None  # to which images of other sizes are brought
    features: Pretrained | None = None  # by which pictures and texts became vectors
    raw: Modality | None = None  # what examples were before; None: these are, or are in columns

    @property
    def kind(self) -> Kind:
        return "image" if len(self.shape) == 3 or self.raw == "pictures" else "features"

    def embed(self, raw: Raw) -> Vectors:
        """Examples as the model takes them."""
        assert self.features is not None
        return embed(self.features, raw)

    def check(self, name: str, examples: NDArray[Any]) -> None:
        if (examples.ndim == 4) != (len(self.shape) == 3):
            raise self.other_kind(f"{name} holds {in_words(examples.shape[1:])}")
        if examples.shape[1:] != self.shape:
            raise PredictionDataError(
                f"{name}: the model was trained on {in_words(self.shape)}, these are {in_words(examples.shape[1:])}"
                + ("; train with --image-size to allow for other sizes" if self.kind == "image" else "")
            )

    def other_kind(self, found: str, other: str | None = None) -> PredictionDataError:
        """Images were found where features are wanted, or the other way round; no size would help."""
        if self.raw is not None:
            trained, other = f"{self.raw}, by their vectors", other or "such data"
        elif self.kind == "image":
            trained, other = in_words(self.shape), other or "features"
        else:
            table = "an array" if self.columns is None else "a table"
            trained, other = f"{table} of {in_words(self.shape)}", other or "images"
        return PredictionDataError(
            f"{found}, but the model was trained on {trained}; give data like those, or a model trained on {other}"
        )


class Block(NamedTuple):
    examples: NDArray[Any]
    labels: Names | None  # blank where missing
    kept: list[Any]  # one list, or Arrow array, per column of `Blocks.columns`
    unseen: Mapping[str, UnknownCategories] = {}  # by column, where training has not seen some word


Read = Callable[[int, int | None], Iterator[Block]]


class Blocks(NamedTuple):
    """Rows to come, in `parts` that can be read by themselves: `read(start, stop)` has the blocks of some of them.

    Whatever part reading starts at, the blocks are the same. `types` are the Arrow types of the kept columns, where
    they have any but text. Rows that nothing identifies are `numbered`, in a column `row`; a table may have a column of
    that name itself.
    """

    columns: list[str]
    has_labels: bool
    read: Read
    parts: int
    types: dict[str, Any]
    numbered: bool = False
    sequential: bool = False  # what precedes a part is read to find it, and `parts` is an estimate

    @property
    def blocks(self) -> Iterator[Block]:
        return self.read(0, None)


class Format(Protocol):
    """A format."""

    NAME: str  # what a file of it is, for a sentence
    KIND: Kind | None  # what all files of it hold; None: either
    LABELS_BESIDE: bool  # whether `labels` names the file with its labels; else it may name one with more of them

    def matches(self, path: Path) -> bool: ...

    def open_pool(self, path: Path, options: Options) -> Pool: ...

    def open_blocks(self, path: Path, wanted: Wanted, labels: Path | None) -> Blocks: ...


def in_words(shape: tuple[int, ...]) -> str:
    if len(shape) == 3:
        return f"images of {shape[1]}×{shape[0]} pixels"
    return counted(shape[0], "feature") if len(shape) == 1 else f"arrays of shape {shape}"
