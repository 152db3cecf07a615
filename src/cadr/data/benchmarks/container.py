"""Reading named files out of a folder or a tar archive alike.

Nothing is ever unpacked: members are read as a stream, so that an archive has no way to write anywhere.
"""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cadr.errors import DataError
from cadr.utils.text import reason

BLOCK = 1 << 20


class ArchiveError(DataError):
    """An archive is damaged, hostile, or lacks a file."""


class ChecksumError(DataError):
    """A file is not the published one."""


class ArchivedFile:
    """One file while it is being read; it knows its size, and its MD5 once it has been read to the end."""

    def __init__(self, where: str, file: IO[bytes], size: int) -> None:
        self.where = where
        self.size = size
        self._file = file
        self._md5 = hashlib.md5(usedforsecurity=False)

    def read(self, limit: int) -> bytes:
        """The whole file, which must not be larger than `limit`."""
        if self.size > limit:
            raise DataError(f"{self.where}: {self.size} bytes are more than such a file has ({limit})")
        with reading(self.where):
            data = self._file.read(self.size)
        self._check_length(len(data))
        self._md5.update(data)
        return data

    def read_into(self, target: NDArray[np.uint8]) -> None:
        """Fill a contiguous array with the whole file, without a copy in between."""
        view = target.reshape(-1).data
        if self.size != len(view):
            raise DataError(f"{self.where}: expected {len(view)} bytes, got {self.size}")
        position = 0
        while position < len(view):
            with reading(self.where):
                block = self._file.read(min(BLOCK, len(view) - position))
            if not block:
                break
            view[position : position + len(block)] = block
            self._md5.update(block)
            position += len(block)
        self._check_length(position)

    def verify(self, md5: str | None) -> None:
        """Compare what was read with the published checksum, where there is one."""
        got = self._md5.hexdigest()
        if md5 is not None and got != md5:
            raise ChecksumError(
                f"{self.where} is not the published file (MD5 {got}, expected {md5}); download it again"
            )

    def _check_length(self, got: int) -> None:
        if got != self.size:
            raise DataError(f"{self.where} ends too early: expected {self.size} bytes, got {got}")


def members(path: Path, wanted: list[str]) -> Iterator[tuple[str, ArchivedFile]]:
    """Each wanted file once, by base name, in the order in which the container has them."""
    if path.is_dir():
        yield from _folder(path, wanted)
    else:
        yield from _tar(path, wanted)


def _folder(path: Path, wanted: list[str]) -> Iterator[tuple[str, ArchivedFile]]:
    for name in wanted:
        file = path / name
        if not file.is_file():
            raise DataError(f"{path} lacks the file {name}; copy the whole official folder")
        with file.open("rb") as opened:
            yield name, ArchivedFile(str(file), opened, file.stat().st_size)


def _tar(path: Path, wanted: list[str]) -> Iterator[tuple[str, ArchivedFile]]:
    found: set[str] = set()
    with reading(path), tarfile.open(path, "r:gz") as archive:
        for member in archive:
            parts = PurePosixPath(member.name)
            if parts.is_absolute() or ".." in parts.parts:
                raise ArchiveError(
                    f"{path} holds {member.name!r}, a path outside its folder; do not trust this archive"
                )
            if parts.name not in wanted or member.isdir():
                continue
            if not member.isreg():
                raise ArchiveError(f"{path}: {member.name!r} should be a plain file, but it is a link or a device")
            if parts.name in found:
                raise ArchiveError(f"{path} holds {parts.name} twice")
            found.add(parts.name)
            opened: Any = archive.extractfile(member)
            yield parts.name, ArchivedFile(f"{path}: {member.name!r}", opened, member.size)
            if found == set(wanted):
                return
    missing = [name for name in wanted if name not in found]
    if missing:
        raise ArchiveError(f"{path} lacks the file {missing[0]}; download the archive again")


@contextmanager
def reading(where: str | Path) -> Iterator[None]:
    """Failures to read become errors that say where."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ArchiveError(f"{where} cannot be read to its end: {reason(error)}") from error
