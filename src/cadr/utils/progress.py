"""What a terminal is for: a line on it while reading takes long, and gone afterwards; nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TypeVar

SECONDS = 2.0  # before anything is said
PAUSE = 0.2  # between one word and the next

Item = TypeVar("Item")


def fancy() -> bool:
    """Whether to draw: a terminal, and the drawing package is there."""
    return sys.stdout.isatty() and find_spec("rich") is not None


def counted(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """The items as they come, while standard error says how many there have been."""
    terminal = sys.stderr.isatty()
    next_word, spoke = time.monotonic() + SECONDS, False
    try:
        for done, item in enumerate(items, start=1):
            yield item
            if terminal and time.monotonic() >= next_word:
                print(f"\r{done:,} of {total:,} {what}", end="", file=sys.stderr, flush=True)
                next_word, spoke = time.monotonic() + PAUSE, True
    finally:
        if spoke:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # what was said is wiped off the line
