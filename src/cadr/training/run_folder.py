"""The folder that a run is: config.toml, split.json, metrics.jsonl, checkpoint/, calibration.json, result.json.

And from there the way to the data that the run was made of.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cadr.config import Config
from cadr.data import BENCHMARKS
from cadr.errors import CheckpointError, ConfigError, TrainingError
from cadr.models.pretrained import HuggingFace
from cadr.training.record import Record, check_record
from cadr.utils import ranks
from cadr.utils.files import expand_home, real_path, sync
from cadr.utils.untrusted import check_plain, parse_json

CALIBRATION, RESULT = "calibration.json", "result.json"


class RunFolder:
    """Reads and writes the plain files of a run; each is replaced as a whole, metrics.jsonl alone is appended to.

    Of several ranks only the first writes: the others' writing does nothing.
    """

    def __init__(self, out: Path | str) -> None:
        self.path = Path(out)
        self.metrics = self.path / "metrics.jsonl"

    @staticmethod
    def there(out: Path | str) -> RunFolder:
        """One to read from."""
        if not Path(out).is_dir():
            raise CheckpointError(f"{out} is not a run: there is no such folder.")
        return RunFolder(out)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the lock goes with the process, however it ends."""
        if ranks.number():
            yield
            return
        made = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("w")
        except OSError as error:
            raise ConfigError(f"The run folder {self.path} cannot be made ({error.strerror}).") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TrainingError(f"Another process is training {self.path}; wait for it or end it.") from None
            except OSError:
                pass  # some file systems have no locks, which is no reason not to train
            try:
                yield
            except BaseException:
                self._forget(made)
                raise

    def _forget(self, made: list[Path]) -> None:
        """Refused before anything was written: no folder that was made for a run that never was stays behind."""
        if [path.name for path in self.path.iterdir()] == [".lock"]:
            (self.path / ".lock").unlink()
            with suppress(OSError):  # another run is in a folder on the way, or has left it just now
                for path in made:
                    path.rmdir()

    def config(self) -> Config | None:
        path = self.path / "config.toml"
        try:
            return Config.read(path) if path.exists() else None
        except ConfigError as error:
            named = str(path) in str(error)
            raise ConfigError(str(error) if named else f"{path} cannot be used: {error}") from None

    def write(self, name: str, text: str) -> None:
        """Replace a file as a whole; what is left of one that could not be written gives its room back."""
        if ranks.number():
            return
        new = self.path / f"{name}.new"
        try:
            with _full_disk(new), new.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path / name)
        except BaseException:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise

    def remove(self, name: str) -> None:
        if ranks.number() == 0:
            (self.path / name).unlink(missing_ok=True)

    def append(self, record: Record) -> None:
        if ranks.number():
            return
        with _full_disk(self.metrics), self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def records(self) -> list[Record]:
        """What metrics.jsonl holds; a last line that a kill left unfinished is no record."""
        return list(read_records(self.metrics))

    def checked_records(self, classes: int | None = None) -> list[Record]:
        """The same for whoever relies on what stands in them, of so many classes."""
        records = self.records()
        for record in records:
            try:
                classes = check_record(record, classes)
            except ValueError as error:
                raise CheckpointError(
                    f"{self.metrics} has a record of step {record['step']} that no run writes: {error}; train the run "
                    "again, in another folder."
                ) from None
        return records

    def settle(self) -> None:
        """Make the records durable: a checkpoint that outlives a crash is of no step whose records do not."""
        if ranks.number():
            return
        with _full_disk(self.metrics):
            sync(self.metrics)

    def rewind(self, step: int, logged: int) -> str:
        """Drop the records of steps that will be done again; a sentence if some up to the step `logged` are lost."""
        if ranks.number():
            return ""
        kept: list[Record] = []
        with suppress(CheckpointError):  # what stands behind a line that is no record is not to be relied on
            for record in read_records(self.metrics):
                if record["step"] <= step:
                    kept.append(record)
        self.write(self.metrics.name, "".join(json.dumps(record) + "\n" for record in kept))
        there = max((record["step"] for record in kept if record["kind"] == "train"), default=0)
        if there >= logged:
            return ""
        return f"{self.metrics} was damaged: its records of steps {there + 1} to {logged} are lost, and were left out."


def read_records(path: Path) -> Iterator[Record]:
    """The records in a metrics.jsonl; none if there is no such file."""
    if not path.exists():
        return
    check_plain(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith("\n"):
                return
            try:
                record: Any = parse_json(line)
                if not (isinstance(record["kind"], str) and isinstance(record["step"], int)):
                    raise ValueError("it has no kind or no step")
            except (ValueError, KeyError, TypeError):
                raise CheckpointError(
                    f"{path}, line {number} is no record: {line[:60].strip()!r}; delete it and the lines after it."
                ) from None
            yield record


def located(config: Config, run: Path) -> Config:
    """With paths that lead nowhere from here led from where the run was begun, most often a folder above it.

    The nearest one from which they lead to something is taken; whether that is what the run saw is checked elsewhere.
    """
    config = with_model_located(config, run)
    source = dataclasses.replace(
        config.source, labels=_found(config.source.labels, run), root=_found(config.source.root, run)
    )
    data = config.data if config.data in BENCHMARKS else str(_found(config.data, run))
    return dataclasses.replace(config, data=data, source=source)


def with_model_located(config: Config, run: Path) -> Config:
    """The same of the pretrained model alone, which predictions need, too."""
    source, model = dataclasses.replace(config.source, features=_found(config.source.features, run)), config.model
    if isinstance(model, HuggingFace):
        model = dataclasses.replace(model, backbone=_found(model.backbone, run) or model.backbone)
    return dataclasses.replace(config, source=source, model=model)


def _found(path: str | None, run: Path) -> str | None:
    if path is None or expand_home(path).is_absolute() or Path(path).exists():
        return path
    return next((str(above / path) for above in real_path(run).parents if (above / path).exists()), path)


@contextmanager
def _full_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TrainingError(
            f"{path} could not be written ({error.strerror}); make room and run the same command again."
        ) from error
