"""Small files of unknown origin: whatever is wrong with them is an OSError or a ValueError that fits into a sentence.

Python's readers fail otherwise on what nobody writes by hand: thousands of brackets exhaust the stack, of the reader or
of whoever prints or compares what was read, and a number of thousands of digits is refused in terms of Python itself.
"""

from __future__ import annotations

import errno
import json
import tomllib
from pathlib import Path
from typing import Any

DEEPEST = 20  # lists and objects within one another; our own files have four


def check_plain(path: Path) -> None:
    """A pipe in the place of a file would be waited for, perhaps for ever, and a device need not end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))


def read_bytes(path: Path) -> bytes:
    check_plain(path)
    return path.read_bytes()


def read_text(path: Path) -> str:
    return read_bytes(path).decode("utf-8")


def parse_json(text: str | bytes) -> Any:
    """What a JSON document holds."""
    try:
        return _checked(json.loads(text))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def parse_toml(text: str) -> dict[str, Any]:
    """What a TOML document holds."""
    try:
        found: dict[str, Any] = _checked(tomllib.loads(text))
        return found
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


_TOO_DEEP = f"lists or objects in it are nested more than {DEEPEST} deep"


def _checked(content: Any) -> Any:
    level = [content]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return content
    raise ValueError(_TOO_DEEP)
