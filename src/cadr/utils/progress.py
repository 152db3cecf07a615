"""What a terminal is for: a line on it while reading takes long, and gone afterwards; nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Self, TypeVar

from cadr.utils.text import duration

SECONDS = 2.0  # before anything is said
PAUSE = 0.2  # between one word and the next
IN_A_LOG = 30.0  # the same where lines stay

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


class TimeLeft:
    """How many of so many items are done, and how long the rest will take; in a log now and then as a line."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what, self.done = total, what, 0
        self.terminal = sys.stderr.isatty()
        self.begun = time.monotonic()
        self.next_word, self.spoke = self.begun + (SECONDS if self.terminal else IN_A_LOG), False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.spoke and self.terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def step(self, items: int) -> None:
        """So many more are done."""
        self.done, now = min(self.total, self.done + items), time.monotonic()
        if now >= self.next_word and self.done < self.total:
            left = (now - self.begun) * (self.total - self.done) / self.done
            line = f"{self.done:,} of {self.total:,} {self.what}, {duration(left)} left"
            print(*(("\r\x1b[K", line) if self.terminal else (line, "\n")), sep="", end="", file=sys.stderr, flush=True)
            self.next_word, self.spoke = now + (PAUSE if self.terminal else IN_A_LOG), True
