"""Waiting for another process: as long as a busy machine may take, and an error where it never happens."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 300.0  # seconds


def until(happened: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} seconds"
        time.sleep(0.02)


def until_lines(path: Path, lines: int) -> None:
    until(lambda: path.exists() and path.read_text().count("\n") >= lines)
