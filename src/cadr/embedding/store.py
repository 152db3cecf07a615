"""Vectors that were computed before, in the user's cache folder: by model, and by what a picture or text holds.

A file holds the keys and vectors of some thousand items, and appears under its name when it is complete. So a run that
is killed half-way continues where the last file ended, and a few more pictures cost a few more vectors.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from cadr.embedding.items import KEY, Vectors
from cadr.utils.files import WriteError, atomic_write, cache_folder

_FOLDER = "embeddings-1"  # the number goes up when pictures are read otherwise
_ROWS = 8192  # of a file
_SMALL = 16  # files of fewer rows that may lie there before they are put together
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, BadZipFile)


class Store:
    """The vectors of one model. Nothing has to be there, or writable: then it keeps nothing."""

    def __init__(self, name: str) -> None:
        base = cache_folder()
        self.folder = None if base is None else base / _FOLDER / name

    def find(self, keys: Sequence[bytes]) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
        """Rows of `keys` whose vectors are there, with these, file by file."""
        wanted: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys):
            wanted.setdefault(key, []).append(row)
        for path in self._files():
            if not wanted:
                return
            with suppress(*_UNREADABLE), np.load(path, allow_pickle=False) as file:
                here = {key: at for at, key in enumerate(_split(file["keys"])) if key in wanted}
                if not here:
                    continue
                vectors = file["vectors"]
                rows = [(row, at) for key, at in here.items() for row in wanted[key]]
                at = np.array(rows, dtype=np.int64)
                yield at[:, 0], vectors[at[:, 1]]
                for key in here:
                    del wanted[key]

    def add(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Keep them; where that is impossible, they will be computed again."""
        if self.folder is None:
            return
        for start in range(0, len(keys), _ROWS):
            part = slice(start, start + _ROWS)
            with suppress(OSError, WriteError):
                self._write(keys[part], vectors[part])

    def tidy(self) -> None:
        """Put small files together, of which an interrupted run or many small ones leave some."""
        small: list[tuple[Path, NDArray[np.uint8], Vectors]] = []
        for path in self._files():
            with suppress(*_UNREADABLE), np.load(path, allow_pickle=False) as file:
                if len(file["keys"]) < _ROWS // 2:
                    small.append((path, file["keys"], file["vectors"]))
        if len(small) < _SMALL:
            return
        keys = [key for _, some, _ in small for key in _split(some)]
        vectors = np.concatenate([some for *_, some in small])
        first = {key: row for row, key in reversed([*enumerate(keys)])}
        with suppress(OSError, WriteError):
            rows = list(first.values())
            for start in range(0, len(rows), _ROWS):
                part = rows[start : start + _ROWS]
                self._write([keys[row] for row in part], vectors[part])
            for path, *_ in small:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        try:
            return [] if self.folder is None else sorted(self.folder.glob("*.npz"))
        except OSError:
            return []

    def _write(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        assert self.folder is not None
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        joined = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, KEY)
        with atomic_write(self.folder / f"{secrets.token_hex(8)}.npz") as path, path.open("wb") as file:
            np.savez(file, keys=joined, vectors=vectors)


def _split(keys: NDArray[np.uint8]) -> list[bytes]:
    content = np.ascontiguousarray(keys).tobytes()
    return [content[at : at + KEY] for at in range(0, len(content), KEY)]
