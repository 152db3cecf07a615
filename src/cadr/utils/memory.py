"""How much memory there is, so that data which cannot fit are refused before they are read."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_GROUPS = Path("/sys/fs/cgroup")
# Of both versions of Linux's containers: the limit, what is used, and which of that is files, given up at need.
_CONTAINERS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)


def available() -> int | None:
    """Bytes that can still be had: on Linux without swapping, elsewhere all that are built in; None if nobody knows."""
    found = [size for size in (_free(), _built_in(), *map(_left, _CONTAINERS)) if size is not None]
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


def _left(container: tuple[str, str, str, str]) -> int | None:
    limit, used, statistics, files = container
    try:
        most = int((_GROUPS / limit).read_text())
    except (OSError, ValueError):  # not in a container, or in one without a limit
        return None
    try:
        taken = int((_GROUPS / used).read_text())
        lines = dict(line.split() for line in (_GROUPS / statistics).read_text().splitlines())
        return max(0, most - taken + int(lines[files]))
    except (OSError, ValueError, KeyError):
        return most
