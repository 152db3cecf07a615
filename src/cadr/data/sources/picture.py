"""Pictures to predict on: a single file, or those of a folder, decoded some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.data.raw import PictureFiles
from cadr.data.sources.base import Block, Blocks, Kind, Options, Wanted
from cadr.data.sources.images import (
    SUFFIXES,
    ImageError,
    Unreadable,
    check_readable,
    decode_readable,
)
from cadr.data.sources.labels import Names, names_of_texts
from cadr.utils.text import shown

NAME, LABELS_BESIDE = "a picture", False
KIND: Kind | None = "image"
TOGETHER = 512  # decoded at a time


def matches(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def open_pool(path: Path, options: Options) -> Pool:
    raise ImageError(f"{shown(path)} is a single picture; expected a folder of them")


def open_blocks(path: Path, wanted: Wanted, labels: Path | None) -> Blocks:
    return picture_blocks([path], [Path(path.name)], names_of_texts([""], wanted.class_names), wanted)


def picture_blocks(
    files: list[Path],
    names: list[Path],
    called: Names,
    wanted: Wanted,
    local: Callable[[list[Path]], AbstractContextManager[list[Path]]] = nullcontext,
) -> Blocks:
    """Files, what they are to be called, and their labels; `local` brings some of them to this machine."""

    parts = -(-len(files) // TOGETHER)

    def read(first: int, last: int | None) -> Iterator[Block]:
        unreadable: Unreadable = []
        for start in (i * TOGETHER for i in range(parts)[first:last]):
            part = slice(start, start + TOGETHER)
            with local(files[part]) as here:
                examples, more = _examples(here, wanted)
            unreadable += more
            if unreadable:
                continue  # all of them are named together, after which no prediction is kept
            wanted.check(shown(files[start]), examples)
            yield Block(examples, called[part], [[n.as_posix() for n in names[part]]])
        check_readable(unreadable, len(files))

    return Blocks(["file"], bool((called != "").any()), read, parts, {})


def _examples(files: list[Path], wanted: Wanted) -> tuple[NDArray[Any], Unreadable]:
    """As the model takes them, and those that cannot be read beside."""
    if wanted.raw != "pictures":
        return decode_readable(files, wanted.image_size)
    try:
        return wanted.embed(PictureFiles(tuple(files))), []
    except ImageError as error:
        if not error.unreadable:
            raise
        return np.empty(0), error.unreadable
