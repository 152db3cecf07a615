"""What is refused before it is opened: names that can be written down nowhere."""

from __future__ import annotations

from pathlib import Path

from cadr.errors import DataError


def check_name(path: Path) -> None:
    """Settings, tables and pages are UTF-8, and name the data and the classes."""
    for name in (str(path), path.resolve().name):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"the name {name!r} is no UTF-8; rename it") from None
