"""A dataclass field that carries its own help, so that the command line needs no second list of options."""

from __future__ import annotations

from dataclasses import field
from typing import TypeVar

T = TypeVar("T")


def option(default: T, help: str) -> T:  # noqa: A002
    """A field with a default and the sentence that `--help` shows for it."""
    return field(default=default, metadata={"help": help})
