"""Runs as their folders tell of them, without the data: settings, records, result, and how to make them again."""

from __future__ import annotations

import dataclasses
import shlex
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadr.config import CHANGEABLE, CHOICES, DEFAULTS, Config, name_of, options_of
from cadr.errors import CheckpointError
from cadr.report.charts import Series
from cadr.training.record import Record
from cadr.training.result import quoted, result, summary
from cadr.training.run_folder import RunFolder
from cadr.training.signature import InputSpec
from cadr.utils.files import real_path

_TELLING = ("train", "fitted")  # kinds of records, one of which a run must have to be told of
STYLES = 8  # that the style sheet tells apart
_BIDIRECTIONAL = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """One column of the report."""

    path: Path
    name: str  # unlike that of every other run in the report
    style: int
    config: Config
    spec: InputSpec
    records: Sequence[Record]
    finished: dict[str, Any] | None  # result.json

    @staticmethod
    def read(path: Path, name: str, style: int) -> ReportedRun:
        folder = RunFolder.there(path)
        config = folder.config()
        if config is None:
            raise CheckpointError(f"{path} is not a run: it holds no config.toml; name the folder that train made.")
        spec = InputSpec.read(path)
        records = folder.checked_records(len(spec.class_names))
        if not any(record["kind"] in _TELLING for record in records):
            raise CheckpointError(f"{path} has nothing to report yet: no training step was recorded; train it first.")
        finished = result(path) if (path / "result.json").exists() else None
        return ReportedRun(path, name, style, config, spec, records, finished)

    def of(self, kind: str) -> list[Record]:
        return [record for record in self.records if record["kind"] == kind]

    def at(self, step: int, evaluation: Record | None) -> ReportedRun:
        """The run as of its checkpoint: without the steps that will be done again, and judged at the last one done.

        An interrupted run has records of later steps than its checkpoint, or was judged at earlier ones only.
        """
        records = [record for record in self.records if record["step"] <= step]
        judged = any(record["kind"] == "evaluation" and record["step"] == step for record in records)
        if evaluation is not None and not judged:
            records.append(evaluation)
        begun = any(record["kind"] in _TELLING for record in records)
        return dataclasses.replace(self, records=records) if begun else self

    @property
    def prior(self) -> Sequence[float]:
        """The class shares of all rows as the run saw them last."""
        shares: list[float] = next(r["prior"] for r in reversed(self.records) if r["kind"] in _TELLING)
        return shares

    @property
    def algorithm(self) -> str:
        return name_of(self.config.algorithm)

    @property
    def step(self) -> int:
        return int(self.records[-1]["step"])

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(map(clean, self.spec.class_names))

    @property
    def last_evaluation(self) -> Record | None:
        return next(iter(reversed(self.of("evaluation"))), None)

    @property
    def judged_on(self) -> str:
        return "nothing" if self.last_evaluation is None else str(self.last_evaluation["on"]).replace("_", "-")

    @property
    def num_judged(self) -> int:
        """Examples that accuracy is a share of."""
        return 0 if self.last_evaluation is None else sum(map(sum, self.last_evaluation["confusion"]))

    def scores(self) -> dict[str, Any]:
        """The figures of the summary: the finished result's, or the same computed from the records so far."""
        return summary(self.of("evaluation"))

    @property
    def is_benchmark(self) -> bool:
        """Whether labels were taken away, so that somebody has the truth."""
        return self.config.protocol is not None or self.config.source.split is not None

    @property
    def accuracy(self) -> float | None:
        """The one that is quoted."""
        return quoted(self.scores(), self.is_benchmark)

    def seconds(self) -> float:
        return float(next(r["timing"]["seconds"] for r in reversed(self.records) if "timing" in r))

    def series(self, kind: str, value: Callable[[Record], float | None]) -> Series:
        """A curve of something in the records."""
        return Series(self.name, self.style, [(record["step"], value(record)) for record in self.of(kind)])


def read_runs(paths: Sequence[Path]) -> list[ReportedRun]:
    """All runs, each with a name that tells it from the others."""
    names = [clean(real_path(path).name) for path in paths]
    if len(set(names)) < len(names):
        names = [clean(str(path)) for path in paths]
    if len(set(names)) < len(names):
        twice = next(path for path, name in zip(paths, names, strict=True) if names.count(name) > 1)
        raise CheckpointError(f"{twice} is named twice; name every run once.")
    return [ReportedRun.read(path, name, i % STYLES) for i, (path, name) in enumerate(zip(paths, names, strict=True))]


def clean(name: str) -> str:
    """A name as it can be shown: no control characters, no broken encoding, nothing that turns the text around."""
    return "".join("\N{REPLACEMENT CHARACTER}" if _unshowable(c) else c for c in name)


def _unshowable(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or unicodedata.bidirectional(character) in _BIDIRECTIONAL


def command(config: Config, out: str) -> str:
    """The `cadr train` command of a run: what was chosen, and every setting that is not the default."""
    words = ["cadr", "train", config.data]
    for part in CHOICES:
        chosen = getattr(config, part)
        if chosen is not None and name_of(chosen) != DEFAULTS.get(part):
            words += [f"--{part}", name_of(chosen)]
    for part in config.parts():
        hidden = CHANGEABLE if part is config.training else frozenset()
        for name, value in options_of(part).items():
            if name not in hidden:
                words += _flag(name, value)
    return shlex.join([*words, "--out", out])


def _flag(name: str, value: Any) -> list[str]:
    dashed = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{dashed}" if value else f"--no-{dashed}"]
    if value is None:
        return [f"--{dashed}", "none"]
    if isinstance(value, list):
        return [f"--{dashed}", *map(str, value)]
    return [f"--{dashed}", str(value)]


def settings(configs: list[Config]) -> list[tuple[str, list[str], bool]]:
    """Every setting of every run: name, values, and whether the runs differ in it."""
    flat = [config.to_dict() for config in configs]
    names = dict.fromkeys(name for one in flat for name in one)
    rows = []
    for name in names:
        values = [_shown_setting(one.get(name)) for one in flat]
        rows.append((name, values, len(set(values)) > 1))
    return rows


def _shown_setting(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (" ".join(map(str, value)) or "–") if isinstance(value, list) else str(value)
