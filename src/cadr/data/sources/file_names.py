"""The names of files in a CSV of labels, however the system that wrote them spells them."""

from __future__ import annotations

import unicodedata
from pathlib import Path, PurePosixPath


def as_there(root: Path, cell: str) -> str:
    """The name as it stands, if a file has it, blanks and all; else in the first other spelling that a file has.

    People put blanks around a cell. Windows puts backslashes between folders. macOS writes é in two signs, and so do
    the archives that it packs, while a spreadsheet writes one.
    """
    name = cell.strip()
    slashed = name.replace("\\", "/")
    spellings = dict.fromkeys((cell, name, slashed))
    if len(spellings) == 1 and name.isascii():  # most names, of which there may be a million to look up
        return name
    found = next((spelling for spelling in spellings if (root / spelling).is_file()), None)
    return found or _otherwise_accented(root, slashed) or name


def _otherwise_accented(root: Path, name: str) -> str | None:
    """Part by part: a folder can have been named by another system than the files in it."""
    found = PurePosixPath()
    for part in PurePosixPath(name).parts:
        spellings = (part, unicodedata.normalize("NFC", part), unicodedata.normalize("NFD", part))
        there = next((found / spelling for spelling in spellings if (root / found / spelling).exists()), None)
        if there is None:
            return None
        found = there
    return str(found)
