"""A dataclass field that carries its own help, so that the command line needs no second list of options."""

from __future__ import annotations

from dataclasses import field
from typing import TypeVar

T = TypeVar("T")


def option(default: T, help: str, belongs_to: tuple[str, str] | None = None) -> T:  # noqa: A002
    """A field with a default and the sentence that `--help` shows for it.

    One that `belongs_to` a value of another field means nothing without it.
    """
    return field(default=default, metadata={"help": help, "belongs_to": belongs_to})
