"""Standard output and standard error as a shell may leave them: closed, or in an encoding without half our signs."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


def make_writable() -> None:
    """Whatever is printed from here on is taken: a sign that the encoding lacks as an escape, all of it when closed."""
    _fill()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fill() -> None:
    """A closed stream's number would go to the next file that is opened, and into it whatever a library prints."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)  # processes that are started have three streams, too
    os.close(number)


def complain(sentence: str) -> None:
    try:
        print(f"cadr: {sentence}", file=sys.stderr, flush=True)
    except OSError:  # nobody hears it any more; the exit status says the rest
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Drop what it still holds: Python would complain about it once more while shutting down."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
