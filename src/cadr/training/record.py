"""What a run says while it goes on, and when it is due: plain dictionaries, one line each in metrics.jsonl.

Every record has `kind` and `step`. All but start, hint and finished are written to the file:

- `start`: `steps`, `resumed` (the step continued from, 0 for a new run), `device`, `parameters`, `message`
- `hint`: `seconds` that the rest will take, `message`; only where it is worth saying
- `train`: `steps` covered, `loss`, `terms`, `mask`, `predicted`, `used`, `precision`, `coverage`, `prior`,
  `thresholds`, `lr`
- `evaluation`: `on` (test, held_out or validation), `accuracy`, `gm`, `recall`, `confusion`
- `warning`: `message`
- `generation`: training starts afresh with more labels: `generation` (from 0), `adopted` and `precision` by class,
  `message`
- `shares`: with `--target-prior estimated`: `share`, `low`, `high` (90 %) and `doubly_robust` of the unlabelled
  examples by class, and the `target` of all examples that training goes on with
- `finished`: `message`, `result` (the content of result.json); the last record of every run that ends well

Whatever depends on the clock or the machine stands under `timing`: `seconds` so far, `steps_per_second`,
`images_per_second`, `memory_gib`. Shares and accuracies are in percent, per class where a list.
"""

from __future__ import annotations

import sys
from typing import Any

from torch import Tensor

from cadr import metrics
from cadr.config import Training

Record = dict[str, Any]


_NUMBERS = {"train": ("steps", "loss", "mask", "lr"), "evaluation": ("accuracy", "gm")}
_OF_CLASSES = {
    "train": ("precision", "coverage", "prior", "thresholds"),
    "evaluation": ("recall",),
    "fitted": ("prior", "shares", "deviations"),
    "shares": ("share", "low", "high"),
}
_TEXTS = dict.fromkeys(("warning", "renaming", "generation"), ("message",)) | {"evaluation": ("on",)}


def check_record(record: Any, classes: int | None) -> int | None:
    """Raise a ValueError for what none of our own records has; returns how many classes there are, where it says so.

    What is not asked for by anybody who reads records is not looked at.
    """
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str) or not _is_count(record.get("step")):
        raise ValueError("it has no kind or no step")
    kind = record["kind"]
    wrong = [name for name in _NUMBERS.get(kind, ()) if not _is_number(record.get(name))]
    wrong += [name for name in _TEXTS.get(kind, ()) if not isinstance(record.get(name), str)]
    for name in _OF_CLASSES.get(kind, ()):
        values = record.get(name)
        if not isinstance(values, list) or not all(v is None or _is_number(v) for v in values):
            wrong.append(name)
            continue
        classes = len(values) if classes is None else classes
        wrong += [name] * (len(values) != classes or (name == "prior" and None in values))
    if kind == "evaluation" and not _is_confusion(record.get("confusion"), classes):
        wrong.append("confusion")
    if not isinstance(record.get("timing", {}), dict) or not all(map(_is_number, record.get("timing", {}).values())):
        wrong.append("timing")
    if wrong:
        raise ValueError(f"its {wrong[0]} is not what it should be")
    return classes


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_confusion(value: Any, classes: int | None) -> bool:
    rows = value if isinstance(value, list) else []
    whole = len(rows) == classes and all(isinstance(row, list) and len(row) == classes for row in rows)
    return whole and all(_is_count(count) for row in rows for count in row) and any(map(any, rows))


def evaluation_points(training: Training) -> set[int]:
    """Evenly spread, the last at the end."""
    count = min(training.evaluations, training.steps)
    return {round(training.steps * i / count) for i in range(1, count + 1)}


def stopping_points(training: Training) -> list[int]:
    """Where a log record is due: every `log_every` steps, and at every evaluation."""
    every = training.log_every or max(10, training.steps // (4 * training.evaluations))
    return sorted(evaluation_points(training) | set(range(every, training.steps + 1, every)))


def scores(counts: Tensor) -> Record:
    """What an evaluation says, from confusion counts."""
    return {
        "accuracy": rounded(metrics.accuracy(counts)),
        "gm": rounded(metrics.geometric_mean(counts)),
        "recall": listed(metrics.recall(counts)),
        "confusion": counts.tolist(),
    }


def rounded(value: float) -> float:
    return float(f"{value:.7g}")


def listed(values: Tensor) -> list[float | None]:
    """For JSON, which knows no nan: what is undefined is null."""
    return [None if value != value else rounded(value) for value in values.tolist()]
