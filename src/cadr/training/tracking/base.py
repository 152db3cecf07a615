"""What a tracker is, and what of a record is a number to plot."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from cadr.training.record import Record
from cadr.training.run_folder import RunFolder
from cadr.utils.optional_imports import optional_import
from cadr.utils.untrusted import parse_json

FILE = "tracking.json"
_KINDS = ("train", "evaluation")
_NO_VALUES = {"kind", "step", "steps", "on", "message", "timing"}
_PACE = ("steps_per_second", "images_per_second", "memory_gib")
_MOST_CLASSES = 50  # a curve each, and there are seven kinds of them


class Point(NamedTuple):
    """All numbers of one step; a step has one point."""

    step: int
    seconds: float  # since the run began, pauses left out
    values: dict[str, float]


class Tracker(ABC):
    """One place where points go. Opened with all points of the run so far, of which it makes good what it lacks."""

    module: ClassVar[str]
    name: ClassVar[str]
    extra: ClassVar[str]

    @abstractmethod
    def __init__(self, folder: RunFolder, begun: float, points: list[Point]) -> None: ...

    @abstractmethod
    def send(self, points: list[Point]) -> None: ...

    @abstractmethod
    def close(self, finished: bool) -> None: ...

    @classmethod
    def check(cls) -> None:
        cls.package()

    @classmethod
    def package(cls) -> Any:
        return optional_import(cls.module, f"Logging to {cls.name}", cls.extra)


def values_of(record: Record, classes: tuple[str, ...]) -> dict[str, float]:
    """The numbers of a record by a path: train/loss, train/terms/labelled, evaluation/recall/cat."""
    if record["kind"] not in _KINDS:
        return {}
    found: dict[str, Any] = {}
    for key, value in record.items():
        if key in _NO_VALUES:
            continue
        path = f"{record['kind']}/{key}"
        if isinstance(value, dict):
            found |= {f"{path}/{_plain(name)}": one for name, one in value.items()}
        elif isinstance(value, list):
            if len(value) == len(classes) <= _MOST_CLASSES:
                found |= {f"{path}/{name}": one for name, one in zip(_distinct(classes), value, strict=True)}
        else:
            found[path] = value
    timing = record.get("timing", {})
    found |= {f"timing/{key}": timing[key] for key in _PACE if key in timing}
    return {path: float(value) for path, value in found.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _plain(name: str) -> str:
    """As every tracker takes it."""
    return re.sub(r"[^\w .-]", "_", name)[:100].strip() or "_"


def _distinct(classes: tuple[str, ...]) -> list[str]:
    plain = [_plain(name) for name in classes]
    return [f"{name} {i}" if plain.count(name) > 1 else name for i, name in enumerate(plain)]


def remembered(folder: RunFolder, name: str) -> dict[str, Any]:
    """What a tracker wrote down about this run: under which name it is kept there."""
    content = _read(folder.path / FILE).get(name)
    return content if isinstance(content, dict) else {}


def remember(folder: RunFolder, name: str, facts: dict[str, Any]) -> None:
    """Not synchronised to disk, which would take longer than a step: after a crash of the machine it is a guess."""
    path = folder.path / FILE
    new = path.with_name(f"{FILE}.new")
    new.write_text(json.dumps(_read(path) | {name: facts}, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
