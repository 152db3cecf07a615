"""Texts in files of their own, in folders laid out as those of images are; and a single one to predict on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cadr.data.pool import Pool
from cadr.data.sources import folder
from cadr.data.sources.base import Block, Blocks, Kind, Options, Wanted
from cadr.data.sources.folder import named_files
from cadr.data.sources.images import IMAGES, FolderError, holds
from cadr.data.sources.labels import names_of_texts
from cadr.data.sources.texts import TEXTS, read_texts
from cadr.utils.text import shown

NAME, LABELS_BESIDE = "a folder of texts", True
KIND: Kind | None = "features"
TOGETHER = 4096  # to predict on at a time


def matches(path: Path) -> bool:
    """A folder with texts and without images, or a file with a text."""
    if not path.is_dir():
        return path.suffix.lower() in TEXTS.suffixes
    return not holds(path, IMAGES) and holds(path, TEXTS)


def open_pool(path: Path, options: Options) -> Pool:
    if not path.is_dir():
        raise FolderError(
            f"{shown(path)} is a single text; expected a folder of them, or a table with a column of texts"
        )
    return folder.open_pool(path, options, TEXTS)


def open_blocks(path: Path, wanted: Wanted, labels: Path | None) -> Blocks:
    if wanted.raw != "texts":
        raise wanted.other_kind(f"{shown(path)} is {NAME if path.is_dir() else 'a text'}", "texts")
    if path.is_dir():
        files, names, called = named_files(path, wanted, labels, TEXTS)
    else:
        files, names, called = [path], [Path(path.name)], names_of_texts([""], wanted.class_names)

    parts = -(-len(files) // TOGETHER)

    def read(first: int, last: int | None) -> Iterator[Block]:
        rows = slice(first * TOGETHER, None if last is None else last * TOGETHER)
        texts = read_texts(files[rows])  # all of them, so that those which cannot be read are named together
        for start in range(0, len(texts), TOGETHER):
            part, at = slice(start, start + TOGETHER), rows.start + start
            named = [n.as_posix() for n in names[at : at + TOGETHER]]
            yield Block(wanted.embed(texts[part]), called[at : at + TOGETHER], [named])

    return Blocks(["file"], bool((called != "").any()), read, parts, {})
