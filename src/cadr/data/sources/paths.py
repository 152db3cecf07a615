"""What is refused before it is opened, and the names of files, however the system that wrote them down spells them."""

from __future__ import annotations

import unicodedata
from pathlib import Path, PurePosixPath

from cadr.errors import DataError


def check_name(path: Path) -> None:
    """Settings, tables and pages are UTF-8, and name the data and the classes."""
    for name in (str(path), path.resolve().name):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"the name {name!r} is no UTF-8; rename it") from None


def check_kind(path: Path) -> None:
    """A pipe would be waited for, perhaps for ever, and can be read only once; a device need not end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path} is a pipe or a device; save what it gives to a file, and name that")


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
