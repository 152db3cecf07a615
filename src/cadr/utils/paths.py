"""Paths that begin with ~, as people write them in settings, where no shell replaces it."""

from __future__ import annotations

from pathlib import Path


def expand_home(path: str | Path) -> Path:
    """With ~ replaced; a ~name whom nobody knows stays, to be reported as the file that is not there."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
