"""What a run says while it goes on: a progress bar on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

from cadr.utils.progress import fancy
from cadr.utils.text import duration, printable

Record = dict[str, Any]
EVALUATION_SECONDS = 2.0  # between plain lines about evaluations: a run of seconds makes a hundred of them
QUIET_SECONDS = 30.0  # between plain lines about training alone
LATELY = 60.0  # seconds over which the present pace is told


def follow(records: Generator[Record, None, None], label: str = "") -> Record:
    """Show records as they come, to the end; the last one is returned. A run that is stopped here saves itself."""
    view = _Bar(label) if fancy() else _Lines(label)
    record: Record = {}
    with closing(records), view.shown():
        for record in records:
            view.show(record)
    return record


class Speed:
    """Steps a second of late.

    That of the whole run would still count an hour in which the machine was busy, or a part on another machine, and be
    wrong about the time left by as much.
    """

    def __init__(self) -> None:
        self.seen: deque[tuple[float, int]] = deque()  # seconds of the run, and its step then
        self.now: float | None = None

    def see(self, record: Record) -> None:
        if "steps_per_second" not in record.get("timing", ()):
            return
        seconds, step = record["timing"]["seconds"], record["step"]
        self.seen.append((seconds, step))
        while len(self.seen) > 1 and seconds - self.seen[1][0] >= LATELY:
            self.seen.popleft()
        since, first = self.seen[0]
        lately = (step - first) / (seconds - since) if step > first and seconds > since else None
        self.now = lately or self.now or record["timing"]["steps_per_second"]

    def in_words(self, left: int) -> str:
        """The pace and how long so many steps will take; blank where nothing is known."""
        return f"{self.now:.1f} steps/s, {duration(left / self.now)} left" if self.now else ""


class _Lines:
    """One line per evaluation, and a sign of life in between."""

    def __init__(self, label: str) -> None:
        self.label = f"{label}: " if label else ""
        self.steps = 0
        self.pace = Speed()
        self.spoke = 0.0

    def shown(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def show(self, record: Record) -> None:
        kind = record["kind"]
        self.pace.see(record)
        if kind == "start":
            self.steps, self.pace = record["steps"], Speed()
            self._say(record["message"])
        elif kind == "evaluation" and (self._silent_for(EVALUATION_SECONDS) or record["step"] == self.steps):
            where = f"{self._where(record)}, " if self.pace.now else ""
            self._say(f"{where}accuracy {record['accuracy']:.2f} %, GM {record['gm']:.2f} %")
        elif kind == "warning":
            self._say(f"warning: {record['message']}")
        elif kind in ("hint", "generation", "renaming", "finished") or (
            kind == "fit" and self._silent_for(EVALUATION_SECONDS)
        ):
            self._say(record["message"])
        elif kind == "train" and self._silent_for(QUIET_SECONDS):
            self._say(f"{self._where(record)}, loss {record['loss']:.4f}")

    def _where(self, record: Record) -> str:
        where = f"step {record['step']:,} of {self.steps:,}"
        return ", ".join(filter(None, (where, self.pace.in_words(self.steps - record["step"]))))

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
        self.pace = Speed()
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
        self.pace.see(record)
        if kind == "start":
            self.steps, self.pace = record["steps"], Speed()
            self.bar.update(self.task, total=self.steps, completed=record["resumed"])
        if kind in ("start", "hint", "generation", "renaming", "warning", "finished"):
            self.bar.console.print(printable(record["message"]), markup=False, highlight=False)
            return
        if kind == "evaluation":
            self.bar.update(self.task, accuracy=f"accuracy {record['accuracy']:.2f} %, GM {record['gm']:.2f} %")
        pace = record["message"] if kind == "fit" else self.pace.in_words(self.steps - record["step"])
        self.bar.update(self.task, completed=record["step"], pace=pace)
