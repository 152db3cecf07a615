"""Memory that is freed, kept for what comes next.

On a CPU training and prediction allocate and free the same large tensors over and over. glibc's malloc gives such
blocks back to the system each time, and the system clears every page of them when they are asked for again: that can
take longer than all arithmetic. Kept, blocks of different sizes leave gaps: it takes room, and is done where there is.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from cadr.utils.memory import available

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
