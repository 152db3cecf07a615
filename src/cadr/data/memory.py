"""How much memory there is, so that data which cannot fit are refused before they are read."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def available() -> int | None:
    """Bytes that can still be had: on Linux without swapping, elsewhere all that are built in; None if nobody knows."""
    found = [size for size in (_free(), _built_in(), *map(_limit, _CONTAINER)) if size is not None]
    return min(found, default=None)


def _free() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return None


def _built_in() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not everywhere
        return None


def _limit(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # not in a container, or in one without a limit
        return None
