"""Send what a run says to where a team looks: TensorBoard, MLflow, W&B. One file each; none unless somebody asks.

The run's metrics.jsonl is what counts. A run that is continued begins at its last checkpoint and does the steps since
then again, and a tracker may have been sent more or less than the file holds by then; so each is opened with the points
that the file holds, and makes good what it lacks without saying anything twice.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from cadr.errors import CadrError, ConfigError
from cadr.training.record import Record
from cadr.training.run_folder import RunFolder
from cadr.training.signature import InputSpec
from cadr.training.tracking.base import Point, Tracker, values_of
from cadr.training.tracking.mlflow import MLflow
from cadr.training.tracking.tensorboard import TensorBoard
from cadr.training.tracking.wandb import WandB
from cadr.utils.options import suggest
from cadr.utils.text import reason

TRACKERS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}
SECONDS = 2.0  # between two requests to a tracker


def check_trackers(names: Sequence[str]) -> None:
    """Before anything is trained: that there are such trackers, and their packages."""
    for name in names:
        if name not in TRACKERS:
            raise ConfigError(f"There is no tracker called {name!r}: {suggest(name, TRACKERS)}")
        TRACKERS[name].check()


def tracked(
    records: Generator[Record, None, None], folder: Path | str, names: Sequence[str]
) -> Generator[Record, None, None]:
    """The records of the run in `folder` as they come, sent to the trackers on their way."""
    if not names:
        yield from records
        return
    sinks: _Sinks | None = None
    finished = False
    with closing(records):
        try:
            for record in records:
                if sinks is None:
                    sinks = _Sinks(RunFolder(folder), names)
                finished = record["kind"] == "finished"
                sinks.see(record)
                yield record
                yield from sinks.warnings(record)
        finally:
            if sinks is not None:
                sinks.close(finished)


class _Sinks:
    """The trackers of one run, and what they were not sent yet."""

    def __init__(self, folder: RunFolder, names: Sequence[str]) -> None:
        self.classes = InputSpec.read(folder.path).class_names
        self.pending: list[Point] = []
        self.begun = time.time()
        self.sent = time.monotonic()
        self.problems: list[str] = []
        for record in (records := folder.records()):
            self._add(record)
        self.begun -= max((record["timing"]["seconds"] for record in records if "timing" in record), default=0.0)
        self.trackers: dict[str, Tracker] = {}
        for name in dict.fromkeys(names):
            try:
                self.trackers[name] = TRACKERS[name](folder, self.begun, self.pending)
            except Exception as error:  # of whatever kind their packages have
                self.close(finished=False)
                if isinstance(error, CadrError):
                    raise
                raise ConfigError(f"--log {name} cannot begin ({reason(error)}); mend that, or leave it out") from error
        self.pending = []

    def see(self, record: Record) -> None:
        complete = bool(self.pending) and record["step"] > self.pending[-1].step
        if complete and time.monotonic() - self.sent > SECONDS:
            self._send()
        self._add(record)

    def warnings(self, record: Record) -> Generator[Record, None, None]:
        while self.problems:
            yield {"kind": "warning", "step": record["step"], "message": self.problems.pop()}

    def close(self, finished: bool) -> None:
        if not finished:  # of its last step there may be more to come, which the file will hold by then
            self.pending = self.pending[:-1]
        self._send()
        for tracker in self.trackers.values():
            with suppress(Exception):  # the run itself is safe
                tracker.close(finished)

    def _add(self, record: Record) -> None:
        values = values_of(record, self.classes)
        if not values:
            return
        if self.pending and self.pending[-1].step == record["step"]:
            self.pending[-1].values.update(values)
        else:
            self.pending.append(Point(record["step"], record.get("timing", {}).get("seconds", 0.0), values))

    def _send(self) -> None:
        """A tracker that cannot be reached must not cost the run: it is left out, and gets the rest another time."""
        points, self.pending, self.sent = self.pending, [], time.monotonic()
        for name, tracker in list(self.trackers.items()) if points else ():
            try:
                tracker.send(points)
            except Exception as error:
                del self.trackers[name]
                self.problems.append(
                    f"{name} takes no more ({reason(error)}); training goes on without it, and the same command adds "
                    "later what is missing there."
                )
