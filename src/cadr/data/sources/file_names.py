"""The names of files in a CSV of labels, however the system that wrote them spells them."""

from __future__ import annotations

import unicodedata
from pathlib import Path


def as_there(root: Path, cell: str) -> str:
    """The name as it stands, if a file has it, blanks and all; else in the first other spelling that a file has.

    People put blanks around a cell. Windows puts backslashes between folders. macOS writes é in two signs, and so do
    the archives that it packs, while a spreadsheet writes one.
    """
    name = cell.strip()
    slashed = name.replace("\\", "/")
    accents = (unicodedata.normalize(form, slashed) for form in ("NFC", "NFD"))
    spellings = dict.fromkeys((cell, name, slashed, *accents))
    if len(spellings) == 1:  # most names, of which there may be a million to look up
        return name
    return next((spelling for spelling in spellings if (root / spelling).is_file()), name)
