"""What takes long to make and is always the same, kept in the user's cache folder for the next process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_DIGEST = 32


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """What `make` once returned under this name, which must say all that it depends on.

    Nothing has to be there: without a folder that can be written, or with a damaged file in it, it is made again.
    """
    folder = _folder()
    if folder is None:
        return make()
    path = folder / name
    with suppress(OSError):
        content = path.read_bytes()
        if sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
            return content[_DIGEST:]
    made = make()
    with suppress(OSError):
        _write(path, sha256(made).digest() + made)
    return made


def _folder() -> Path | None:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # a user without a home, as in some containers
            return None
    return base / "cadr"


def _write(path: Path, content: bytes) -> None:
    """Under a name of this process alone first: others may be writing the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        new.replace(path)
    except BaseException:
        new.unlink()
        raise
