"""What a comparison on labels of one's own says of all rows: columns beside its table, and the sentences on them."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cadr.cli.comparison import highest, spread
from cadr.cli.runs import Job
from cadr.inference.accuracy_notes import last_evaluation
from cadr.inference.evaluation import UserLabels
from cadr.inference.predictor import Predictor

WEIGHTED, OUTSIDE = "weighted, %", "shares outside"
_NAMED = 3  # classes in a cell


class OnAllRows(NamedTuple):
    """Of one run."""

    weighted: float | None  # accuracy by held-out labels, where these were judged
    outside: Sequence[str]  # classes whose predicted shares the diagnosis contradicts


Found = Mapping[str, Sequence[OnAllRows]]
"""Method -> what each of its runs comes to."""


def on_all_rows(labels: UserLabels | None, jobs: Sequence[Job]) -> list[OnAllRows]:
    """Of every run; none where the data are a benchmark's, or nothing can be diagnosed."""
    if labels is None:
        return []
    found = []
    for job in jobs:
        last, predictor = last_evaluation(job.out), Predictor.load(job.out, device=job.config.training.device)
        weighted = None if last is None else labels.weighted(last)
        found.append(OnAllRows(weighted and weighted.accuracy, [one.name for one in labels.outside(predictor)]))
    return found


def columns(found: Found) -> dict[str, dict[str, str]]:
    """Title -> method -> cell; none without anything found."""
    added = {}
    if weighted := _weighted(found):
        added[WEIGHTED] = {method: spread(values) for method, values in weighted.items()}
    if found:
        added[OUTSIDE] = {method: _classes(runs) for method, runs in found.items()}
    return added


def sentences(found: Found) -> list[str]:
    """What these columns mean."""
    said = []
    if weighted := _weighted(found):
        best = highest({method: statistics.fmean(values) for method, values in weighted.items()})
        said.append(
            "Weighted: a held-out label counts 1/propensity, so that classes count as in all rows. Highest there: "
            f"{best}."
        )
    if any(run.outside for runs in found.values() for run in runs):
        seeds = " (in so many seeds)" if max(map(len, found.values())) > 1 else ""
        said.append(
            f"Shares outside: classes{seeds} whose predicted share of the unlabelled rows lies outside what cadr "
            "diagnose estimates; there the model or the estimate is wrong, whatever the held-out labels say."
        )
    return said


def _weighted(found: Found) -> dict[str, list[float]]:
    values = {method: [r.weighted for r in runs if r.weighted is not None] for method, runs in found.items()}
    return values if all(len(values[method]) == len(runs) for method, runs in found.items()) else {}


def _classes(runs: Sequence[OnAllRows]) -> str:
    """The classes contradicted most often first."""
    counts = Counter(called for run in runs for called in run.outside).most_common()
    if not counts:
        return "none"
    named = [repr(called) if len(runs) == 1 else f"{called!r} ({seeds})" for called, seeds in counts[:_NAMED]]
    return ", ".join(named) + (f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else "")
