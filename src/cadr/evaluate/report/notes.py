"""What a reader should know before believing the figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cadr.evaluate.report.run import Run, clean

FEW = 300  # examples, below which an accuracy is not worth its decimals


def notes(runs: Sequence[Run]) -> list[str]:
    return [*_few_judged(runs), *_unfinished(runs), *_warnings(runs)]


def _few_judged(runs: Sequence[Run]) -> list[str]:
    """With a dozen labels held out, "100 %" means little, and somebody has to say so."""
    found = []
    for run in runs:
        accuracy = run.scores()["median_10"]
        if accuracy is not None and run.num_judged < FEW:
            low, high = wilson(accuracy / 100.0, run.num_judged)
            found.append(
                f"Accuracy of {run.name} is judged on {run.num_judged} {run.judged_on} examples only: it may be "
                f"anything from {100 * low:.0f} to {100 * high:.0f} % (95 % interval)."
            )
    return found


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share of n; unlike the simple one it does not shrink to a point at 100 %."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return middle - half, middle + half


def _unfinished(runs: Sequence[Run]) -> list[str]:
    return [
        f"{run.name} is not finished: it is at step {run.step:,} of {run.config.training.steps:,}."
        for run in runs
        if run.finished is None
    ]


def _warnings(runs: Sequence[Run]) -> list[str]:
    return [
        clean(record["message"]) if len(runs) == 1 else f"{run.name}: {clean(record['message'])}"
        for run in runs
        for record in run.of("warning")
    ]
