"""Ray, through the `ray` extra: the cluster at RAY_ADDRESS, or else one on this machine for as long as it is needed.

Nothing is sent anywhere about the use of it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cadr.errors import ConfigError, TrainingError
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason

LOSSES = 3  # times that a worker may be lost with the same work: what ends it every time must not be tried for ever
_STORE = 1 << 28  # bytes that a local cluster hands over in memory
# On one machine that has other work: it is not lost when it is slow to answer, and the work there is not for later.
_ALONE = {
    "health_check_timeout_ms": "600000",
    "health_check_failure_threshold": "1000",
    "worker_niceness": "0",
}
_PATIENCE = 5.0  # seconds for a cluster to answer
_GRACE = 120.0  # seconds for what is stopped to save itself

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def cluster(gpus: float = 0.0) -> Iterator[Any]:
    """The module `ray`, connected; each piece of work is going to take so many GPUs."""
    ray = optional_import("ray", "--engine ray", "ray")
    ours = not ray.is_initialized()  # a program around us may have connected already
    if ours:
        connect(ray, os.environ.get("RAY_ADDRESS"))
    try:
        there = ray.cluster_resources().get("GPU", 0.0)
        if gpus > there:
            raise ConfigError(f"--gpus {gpus:g}: the Ray cluster has {there:g} GPUs; ask for fewer, or leave it out")
        yield ray
    finally:
        if ours:
            ray.shutdown()


def connect(ray: Any, address: str | None = None, cpus: int | None = None) -> None:
    """To the cluster at the address, or else to one on this machine of so many processes, by default one a core."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what matters is raised
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address in (None, "", "local"):
        for name, value in _ALONE.items():
            os.environ.setdefault(f"RAY_{name}", value)
        options |= {"address": "local", "num_cpus": cpus, "include_dashboard": False, "object_store_memory": _STORE}
    elif address != "auto":
        _check_answers(str(address))
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options)
    except Exception as error:  # a cluster can fail in any way at all
        where = (
            f"the Ray cluster at {address} (RAY_ADDRESS) cannot be used" if address else "Ray cannot be started here"
        )
        raise ConfigError(f"{where}: {reason(error)}") from error
    finally:
        with suppress(ValueError):  # other threads than the main one have no say in signals, nor has Ray there
            signal.signal(signal.SIGTERM, before)


def _check_answers(address: str) -> None:
    """At once: Ray itself would try for minutes."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
        if not host or not port:
            raise ValueError("expected HOST:PORT")
        socket.create_connection((host, port), _PATIENCE).close()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {address} (RAY_ADDRESS): {reason(error)}; start one with ray start --head, or "
            "unset RAY_ADDRESS for one on this machine"
        ) from None


def lost(error: Exception) -> TrainingError:
    """For a worker that was lost as often as one may be."""
    return TrainingError(
        f"a Ray worker was lost {LOSSES + 1} times with the same work (out of memory?): {type(error).__name__}; give "
        "each worker more, or have fewer at a time"
    )


def run_tasks(
    ray: Any,
    work: Callable[[T], R],
    items: Sequence[T],
    gpus: float = 0.0,
    seconds: float | None = None,
    polite: bool = False,
) -> Iterator[tuple[int, R]]:
    """What `work` makes of each item, with its number, as they get ready; one CPU each, in processes of their own.

    An item whose process is lost is worked on again. After so many `seconds` it is as if somebody had pressed Ctrl-C.
    `polite`: what is stopped gets the time to save itself.
    """
    here = str(Path.cwd())

    def there(item: T) -> R:
        with suppress(OSError):
            os.chdir(here)  # names of files may be relative
        return work(item)

    task = ray.remote(there).options(num_cpus=1, num_gpus=gpus, max_retries=LOSSES, retry_exceptions=False)
    end = None if seconds is None else time.monotonic() + seconds
    waiting = {task.remote(item): number for number, item in enumerate(items)}
    try:
        while waiting:
            left = None if end is None else max(0.0, end - time.monotonic())
            found, _ = ray.wait(list(waiting), num_returns=1, timeout=left)
            if not found:
                raise KeyboardInterrupt
            (ready,) = found
            try:
                answer = ray.get(ready)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
                raise lost(error) from None
            yield waiting.pop(ready), answer
    finally:
        for unfinished in waiting:
            ray.cancel(unfinished, force=not polite)
        if polite and waiting:
            ray.wait(list(waiting), num_returns=len(waiting), timeout=_GRACE)
