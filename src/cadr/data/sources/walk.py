"""The images under a folder, however deep, and through links; what is hidden or no image is passed over."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from cadr.data.sources.images import FOREIGN, SUFFIXES
from cadr.errors import DataError
from cadr.utils.text import shown


class FolderError(DataError):
    """A folder is not laid out as expected."""


def images_in(root: Path) -> list[Path]:
    """In order of name. No folder is read twice, so that links to a folder around them end somewhere."""
    waiting, seen = deque([root]), set[tuple[int, int]]()
    found: list[Path] = []
    while waiting:
        folder = waiting.popleft()
        status = folder.stat()
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        inside = visible(folder)
        found += images_among(inside)
        for path in (path for path in inside if path.is_dir()):
            if path.is_symlink():
                waiting.append(path)
            else:
                waiting.appendleft(path)  # a folder goes by its own name before that of a link to it
    return sorted(found, key=str)


def images_among(inside: list[Path]) -> list[Path]:
    """Of what a folder holds.

    Those of a kind that is not read are among them, to be named by whoever reads them, unless the same lies beside them
    as one that is.
    """
    read = {path.stem for path in inside if path.suffix.lower() in SUFFIXES}
    kinds = ((path, path.suffix.lower()) for path in inside)
    wanted = (path for path, kind in kinds if kind in SUFFIXES or (kind in FOREIGN and path.stem not in read))
    return [path for path in wanted if path.is_file()]  # a pipe is no image


def visible(folder: Path) -> list[Path]:
    """What the folder holds, in order of name, less what systems hide there.

    As ._001.jpg, which macOS writes beside 001.jpg on other disks, and is no picture.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise FolderError(f"{shown(folder)} cannot be read: {error.strerror}") from error
    for entry in found:
        if entry.is_symlink() and not Path(entry).exists():
            target = Path(entry).readlink()
            raise FolderError(
                f"{shown(entry.path)} is a link to {shown(target)}, which is not there; mend it or take it away"
            )
    return [folder / entry.name for entry in found]
