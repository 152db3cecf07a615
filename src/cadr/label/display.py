"""How an example is shown to a person: a picture from its file, the text of a file, or the cells of its row."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cadr.config import Config
from cadr.data.pool import Pool
from cadr.data.sources.images import FOREIGN, SUFFIXES, decode
from cadr.data.sources.more_labels import TABLES, raw_rows
from cadr.utils.files import expand_home

SIDE = 1280  # pixels of the longer side, at most
_SMALL = 320  # pixels, up to which every one of them counts
CHARACTERS = 20_000  # of a text
NUMBERS = 60  # of a row of an array


@dataclass(frozen=True)
class ShownExample:
    """One example. Of the three forms one is there."""

    name: str
    cells: tuple[tuple[str, str], ...] = ()  # column and cell
    text: str | None = None
    picture: bool = False


@dataclass
class Display:
    """The examples of a run, by row. The cells of the rows that will be asked for are read together."""

    config: Config
    pool: Pool
    rows: NDArray[np.int64]
    _cells: dict[int, tuple[tuple[str, str], ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.root = expand_home(self.config.data)
        if self.root.suffix.lower() in TABLES and self.root.is_file():
            found = raw_rows(self.root, self.rows.tolist(), self.config.source.label_column)
            self._cells = {row: tuple(zip(found.header, cells, strict=True)) for row, cells in found.cells.items()}

    def shown(self, row: int) -> ShownExample:
        name = self.name(row)
        path = self._file(row)
        if path is not None and path.suffix.lower() not in SUFFIXES | FOREIGN:
            return ShownExample(name, text=path.read_text(encoding="utf-8", errors="replace")[:CHARACTERS])
        if path is not None or self.pool.examples.ndim == 4:
            return ShownExample(name, picture=True)
        return ShownExample(name, self._cells.get(row) or self._numbers(row))

    def name(self, row: int) -> str:
        return (self.pool.identifiers[row] if self.pool.identifiers is not None else "") or f"row {row}"

    def picture(self, row: int) -> tuple[str, bytes]:
        """The kind of image and its bytes, made anew of its pixels: nothing else of the file is passed on."""
        path = self._file(row)
        image = Image.fromarray(np.ascontiguousarray(self.pool.examples[row] if path is None else decode(path)))
        small = max(image.size) <= _SMALL
        image.thumbnail((SIDE, SIDE))
        content = io.BytesIO()
        image.save(content, "PNG" if small else "JPEG", quality=90)
        return "image/png" if small else "image/jpeg", content.getvalue()

    def _file(self, row: int) -> Path | None:
        names = self.pool.identifiers
        return self.root / names[row] if self.root.is_dir() and names is not None else None

    def _numbers(self, row: int) -> tuple[tuple[str, str], ...]:
        values: NDArray[Any] = self.pool.examples[row]
        names = self.pool.feature_names or tuple(str(i) for i in range(len(values)))
        cells = [(name, f"{value:.6g}") for name, value in zip(names, values.tolist(), strict=True)]
        return tuple(cells[:NUMBERS])
