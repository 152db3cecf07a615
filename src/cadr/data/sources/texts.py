"""Texts: how they are read from files of their own, and what to do where no pretrained model is named to read them."""

from __future__ import annotations

from pathlib import Path

from cadr.data.raw import Texts
from cadr.data.sources.images import Files, FolderError
from cadr.utils.text import reason, shown

TEXTS = Files("text", frozenset({".txt"}))
LARGEST = 1 << 20  # characters, of which models read the first thousands at most
SHOWN = 20
ADVICE = (
    "add --features NAME with a model of texts, such as sentence-transformers/all-MiniLM-L6-v2 (pip install "
    "'cadr[features]')"
)


def read_texts(files: list[Path]) -> Texts:
    """The texts in UTF-8; those that cannot be read are named together."""
    texts: list[str] = []
    unreadable: list[tuple[Path, str]] = []
    for path in files:
        try:
            with path.open(encoding="utf-8-sig") as file:
                texts.append(file.read(LARGEST))
        except UnicodeDecodeError as error:
            unreadable.append((path, f"it is not UTF-8 (byte {error.object[error.start]:#04x})"))
        except OSError as error:
            unreadable.append((path, error.strerror or reason(error)))
    if unreadable:
        more = f" and {len(unreadable) - SHOWN:,} more" if len(unreadable) > SHOWN else ""
        raise FolderError(
            f"{', '.join(shown(path) for path, _ in unreadable[:SHOWN])}{more} cannot be read: {unreadable[0][1]}; "
            "save as UTF-8 or take away"
        )
    return Texts(tuple(texts))
