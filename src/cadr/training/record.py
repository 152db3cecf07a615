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

from typing import Any

from torch import Tensor

from cadr import metrics
from cadr.config import Training

Record = dict[str, Any]


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
