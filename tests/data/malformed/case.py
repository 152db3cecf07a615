"""What a malformed input is: it builds something wrong under a folder and returns what opens it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.data.loose import open_data
from tests.data.writers import (
    tiny,
)


class Case(NamedTuple):
    build: Callable[[Path], Callable[[], Any]]
    error: str  # the name of the error's class
    words: tuple[str, ...]  # what it must say: what is wrong, and where


CASES: dict[str, Case] = {}

X, Y = tiny(50)
FEATURES = np.arange(20, dtype=np.float32).reshape(10, 2)
LABELS = np.arange(10) % 2
PIXELS = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)


def case(error, *words):
    """Add the function as a case under its own name; it returns what to open, or a function that opens."""

    def add(build):
        def opener(folder):
            made = build(folder)
            return made if callable(made) else lambda: open_data(made)

        CASES[build.__name__.replace("_", " ")] = Case(opener, error, words)
        return build

    return add


def several(error, rows, words=()):
    """Cases that differ in one value only: name -> (value, words)."""

    def add(build):
        for name, (value, *more) in rows.items():
            made = case(error, *words, *more)(lambda folder, value=value: build(folder, value))
            CASES[f"{build.__name__} {name}".replace("_", " ")] = CASES.pop(made.__name__.replace("_", " "))
        return build

    return add


def npz(folder: Path, **arrays) -> Path:
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"
