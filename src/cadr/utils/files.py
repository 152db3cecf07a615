"""Files that are there as a whole or not at all, and names of files, however the system that wrote them spells them.

Neither a full disk nor Ctrl-C leaves half of a file behind.
"""

from __future__ import annotations

import errno
import os
import secrets
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from cadr.errors import DataError
from cadr.utils.text import reason


class WriteError(DataError):
    """A file cannot be written."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Where to write what takes the name `path` in the end; folders on the way there are made."""
    special = path.exists() and not path.is_file()  # /dev/stdout cannot be replaced, nor can a folder
    path = path if special else Path(os.path.realpath(path))  # a link stays one
    # Of its own, or two processes that write to one name would mix what they write.
    new = path if special else path.with_name(f"{path.name[:50]}.{secrets.token_hex(4)}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield new
        if not special:
            sync(new)  # what a full disk refuses shows here at the latest, before the name is taken
            new.replace(path)
    except UnicodeEncodeError as error:
        if error.object != str(new):  # of something in the file
            raise
        raise WriteError(f"{str(path)!r} could not be written: the name is no UTF-8; choose another") from None
    except OSError as error:
        if error.filename not in (None, str(new)):  # of something else, which was read meanwhile
            raise
        raise WriteError(f"{path} could not be written: {error.strerror or reason(error)}") from error
    finally:
        if not special:
            with suppress(OSError):  # nothing can be removed from a disk that cannot be written to, nor is it there
                new.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Make durable what is in a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        known = error.errno in (errno.EINVAL, errno.ENOTSUP)  # of systems that do this for files alone
        if not (known and path.is_dir()):
            raise
    finally:
        os.close(descriptor)


def real_path(path: Path) -> Path:
    """Where it leads. A link that leads in a circle is no error here: whoever opens it says what it is."""
    return Path(os.path.realpath(path))


def expand_home(path: str | Path) -> Path:
    """With ~ replaced; a ~name whom nobody knows stays, to be reported as the file that is not there."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def cache_folder() -> Path | None:
    """Where is kept what takes long to make and can be made again; None where the user has no such place."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # a user without a home, as in some containers
            return None
    return base / "cadr"


def check_name(path: Path) -> None:
    """Settings, tables and pages are UTF-8, and name the data and the classes."""
    for name in (str(path), real_path(path).name):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"the name {name!r} is no UTF-8; rename it") from None


def check_kind(path: Path) -> None:
    """A pipe would be waited for, perhaps for ever, and can be read only once; a device need not end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path} is a pipe or a device; save what it gives to a file, and name that")


def as_there(root: Path, cell: str) -> str:
    """The name as it stands, if a file has it, blanks and all; else in the first other spelling that a file has.

    People put blanks around a cell. Windows puts backslashes between folders. macOS writes é in two signs, and so do
    the archives that it packs, while a spreadsheet writes one.
    """
    name = cell.strip()
    slashed = name.replace("\\", "/")
    spellings = dict.fromkeys((cell, name, slashed))
    if len(spellings) == 1 and name.isascii():  # most names, of which there may be a million to look up
        return name
    found = next((spelling for spelling in spellings if (root / spelling).is_file()), None)
    return found or _otherwise_accented(root, slashed) or name


def _otherwise_accented(root: Path, name: str) -> str | None:
    """Part by part: a folder can have been named by another system than the files in it."""
    found = PurePosixPath()
    for part in PurePosixPath(name).parts:
        spellings = (part, unicodedata.normalize("NFC", part), unicodedata.normalize("NFD", part))
        there = next((found / spelling for spelling in spellings if (root / found / spelling).exists()), None)
        if there is None:
            return None
        found = there
    return str(found)
