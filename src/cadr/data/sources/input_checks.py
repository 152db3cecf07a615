"""What is refused before it is opened: names that can be written down nowhere, and files that may have no end."""

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


def check_kind(path: Path) -> None:
    """A pipe would be waited for, perhaps for ever, and can be read only once; a device need not end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path} is a pipe or a device; save what it gives to a file, and name that")
