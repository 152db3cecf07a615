"""What a run says while it goes on: a progress bar on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

from cadr.cli.table import fancy
from cadr.data.reason import printable
from cadr.train.report import duration

Record = dict[str, Any]
EVALUATION_SECONDS = 2.0  # between plain lines about evaluations: a run of seconds makes a hundred of them
QUIET_SECONDS = 30.0  # between plain lines about training alone


def follow(records: Generator[Record, None, None], label: str = "") -> Record:
    """Show records as they come, to the end; the last one is returned. A run that is stopped here saves itself."""
    view = _Bar(label) if fancy() else _Lines(label)
    record: Record = {}
    with closing(records), view.shown():
        for record in records:
            view.show(record)
    return record


def time_left(steps: int, record: Record) -> float | None:
    """Seconds until the last step at the present pace."""
    pace = record.get("timing", {}).get("steps_per_second")
    return (steps - record["step"]) / pace if pace else None


class _Lines:
    """One line per evaluation, and a sign of life in between."""

    def __init__(self, label: str) -> None:
        self.label = f"{label}: " if label else ""
        self.steps = 0
        self.spoke = 0.0

    def shown(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def show(self, record: Record) -> None:
        kind = record["kind"]
        if kind == "start":
            self.steps = record["steps"]
            self._say(record["message"])
        elif kind == "evaluation" and (self._silent_for(EVALUATION_SECONDS) or record["step"] == self.steps):
            self._say(f"{self._where(record)}, accuracy {record['accuracy']:.2f} %, GM {record['gm']:.2f} %")
        elif kind == "warning":
            self._say(f"warning: {record['message']}")
        elif kind in ("hint", "generation", "renaming", "finished"):
            self._say(record["message"])
        elif kind == "train" and self._silent_for(QUIET_SECONDS):
            self._say(f"{self._where(record)}, loss {record['loss']:.4f}")

    def _where(self, record: Record) -> str:
        where = f"step {record['step']:,} of {self.steps:,}"
        pace = record.get("timing", {}).get("steps_per_second")
        return f"{where}, {pace:.1f} steps/s, {duration(time_left(self.steps, record))} left" if pace else where

    def _silent_for(self, seconds: float) -> bool:
        return time.monotonic() - self.spoke > seconds

    def _say(self, text: str) -> None:
        print(printable(self.label + text), flush=True)
        self.spoke = time.monotonic()


class _Bar:
    """A bar with steps, accuracy so far, steps/s and time left."""

    def __init__(self, label: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self.steps = 0
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[accuracy]}"),
            TextColumn("{task.fields[pace]}"),
        )
        self.task = self.bar.add_task(label or "training", total=None, accuracy="", pace="")

    def shown(self) -> AbstractContextManager[Any]:
        return self.bar

    def show(self, record: Record) -> None:
        kind = record["kind"]
        if kind == "start":
            self.steps = record["steps"]
            self.bar.update(self.task, total=self.steps, completed=record["resumed"])
        if kind in ("start", "hint", "generation", "renaming", "warning", "finished"):
            self.bar.console.print(printable(record["message"]), markup=False, highlight=False)
            return
        if kind == "evaluation":
            self.bar.update(self.task, accuracy=f"accuracy {record['accuracy']:.2f} %, GM {record['gm']:.2f} %")
        pace = record.get("timing", {}).get("steps_per_second")
        left = f"{pace:.1f} steps/s, {duration(time_left(self.steps, record))} left" if pace else ""
        self.bar.update(self.task, completed=record["step"], pace=left)
