"""How much memory there is, so that data which cannot fit are refused before they are read."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

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


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # as in malloc.h
_KEEPING = {_MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1}
# Where malloc's own adjustment ends once it has seen large blocks; it no longer adjusts anything after a setting.
_USUAL = {_MMAP_MAX: 65536, _MMAP_THRESHOLD: 32 * 2**20, _TRIM_THRESHOLD: 64 * 2**20}

_ROOM = 2  # times the most that was ever in use

T = TypeVar("T")

_lock = Lock()
_users = 0
_keeping = False


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """While this lasts malloc keeps what is freed, for all of the process; then it gives it back.

    Best begun when as much memory has been in use as will be: then it is known whether there is room.
    """
    _count(+1)
    try:
        yield
    finally:
        _count(-1)


@contextmanager
def kept_from_the_second(batches: Iterable[T]) -> Iterator[Iterator[T]]:
    """The batches; while all but the first are worked on, freed memory is kept. The first shows how much they take."""
    with ExitStack() as stack:

        def each() -> Iterator[T]:
            for number, batch in enumerate(batches):
                if number == 1:
                    stack.enter_context(freed_memory_kept())
                yield batch

        yield each()


def _count(change: int) -> None:
    """Runs and predictions may overlap: the first one sets, the last one puts back."""
    global _users, _keeping
    with _lock:
        before, _users = _users, _users + change
        libc = _glibc()
        if libc is None or (before > 0) == (_users > 0):
            return
        if _users:
            _keeping = _roomy()
            _set(libc, _KEEPING if _keeping else {})
        elif _keeping:
            _set(libc, _USUAL)
            libc.malloc_trim(0)


def _set(libc: Any, options: dict[int, int]) -> None:
    for option, value in options.items():
        libc.mallopt(option, value)


def _roomy() -> bool:
    """Asked on Linux alone."""
    import resource

    left = available()
    return left is None or left > _ROOM * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@cache
def _glibc() -> Any:
    """The C library if it is glibc, and nobody has set up its malloc otherwise."""
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return None
    if "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
