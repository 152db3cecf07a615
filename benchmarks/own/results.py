"""The tables of `own_data.py`: what every method gets on every set, and how often it is best."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from benchmarks.cells import markdown
from benchmarks.own.methods import SIMPLE
from benchmarks.own.missing import MISSINGNESS
from benchmarks.own.sets import DECIDING, FINAL

Record = dict[str, Any]
Cell = tuple[str, str]  # set, missingness
Values = dict[Cell, dict[str, dict[int, float]]]  # cell -> method -> seed -> value
BASE = "logistic_balanced"


def values(records: Iterable[Record], what: str) -> Values:
    found: Values = defaultdict(lambda: defaultdict(dict))
    for record in records:
        found[record["set"], record["missing"]][record["method"]][record["seed"]] = record[what]
    return found


def build(records: Sequence[Record], command: str) -> str:
    parts = ["# On people's own data", "", _about(command)]
    for half, names in (("deciding", DECIDING), ("final", FINAL)):
        of = [record for record in records if record["set"] in names]
        if not of:
            continue
        parts += ["", f"## Sets that are {half}" if half == "deciding" else "## Sets that were looked at once"]
        for missing in MISSINGNESS:
            some = [record for record in of if record["missing"] == missing]
            if some:
                parts += ["", f"### Labels missing {missing}", "", _each(some, "accuracy"), "", _summary(some)]
    return "\n".join(parts) + "\n"


def _about(command: str) -> str:
    return (
        f"Written by `{command}`. Judged on the true classes of the unlabelled rows; mean ± standard error over the "
        "seeds that a method has run with. Seconds are a processor's, on one core. Best: the highest mean. Within 1 "
        "SE: the mean difference to the best, seed by seed, is at most its standard error. Behind: the largest "
        "difference to the best of seven simple methods, set by set, and ahead: the mean difference to it, over sets. "
        "Lead: the mean difference to balanced logistic regression. Log loss is that after one temperature, chosen on "
        "the other half of the rows."
    )


def _each(records: Sequence[Record], what: str) -> str:
    """Accuracy, methods by sets."""
    found = values(records, what)
    methods = _in_order(records)
    sets = [name for name in (*DECIDING, *FINAL) if any(cell[0] == name for cell in found)]
    lines = []
    for method in methods:
        cells = [next(v for cell, v in found.items() if cell[0] == name).get(method, {}) for name in sets]
        lines.append([method, *(_mean(list(cell.values())) for cell in cells)])
    return f"Accuracy, %\n\n{markdown(['', *sets], lines)}"


def _summary(records: Sequence[Record]) -> str:
    """One line a method, over the sets on which every method has run."""
    methods = _in_order(records)
    accuracy, recall, loss = (values(records, what) for what in ("accuracy", "macro_recall", "calibrated"))
    seconds = values(records, "seconds")
    lines = []
    for method in methods:
        cells = [cell for cell in accuracy if method in accuracy[cell]]
        best = [c for c in cells if _best(accuracy[c], methods) == method]
        near = [c for c in cells if _within(accuracy[c], method, methods)]
        behind = [_difference(accuracy[c], _best(accuracy[c], tuple(SIMPLE)), method) for c in cells]
        lines.append(
            [
                method,
                str(len(cells)),
                f"{_over(accuracy, cells, method):.1f}",
                f"{_over(recall, cells, method):.1f}",
                f"{_over(loss, cells, method):.3f}",
                f"{statistics.fmean(_difference(accuracy[c], method, BASE) for c in cells):+.1f}",
                f"{-statistics.fmean(behind):+.1f}",
                str(len(best)),
                str(len(near)),
                f"{max(behind):.1f}",
                f"{_over(seconds, cells, method):.1f}",
            ]
        )
    head = ["", "sets", "accuracy", "macro recall", "log loss", "lead", "ahead", "best", "within 1 SE", "behind"]
    return markdown([*head, "seconds"], lines)


def _in_order(records: Sequence[Record]) -> tuple[str, ...]:
    there = {record["method"] for record in records}
    known = [name for name in SIMPLE if name in there]
    return (*known, *sorted(there - set(known)))


def _mean(figures: Sequence[float]) -> str:
    if not figures:
        return "·"
    spread = f" ± {statistics.stdev(figures) / len(figures) ** 0.5:.1f}" if len(figures) > 1 else ""
    return f"{statistics.fmean(figures):.1f}{spread}"


def _over(found: Values, cells: Sequence[Cell], method: str) -> float:
    return statistics.fmean(statistics.fmean(found[c][method].values()) for c in cells)


def _best(cell: dict[str, dict[int, float]], among: Iterable[str]) -> str:
    """The method with the highest mean."""
    return max((m for m in among if m in cell), key=lambda m: statistics.fmean(cell[m].values()))


def _difference(cell: dict[str, dict[int, float]], one: str, other: str) -> float:
    """How far one method's mean lies above another's, over the seeds that both have run with."""
    both = cell[one].keys() & cell[other].keys()
    return statistics.fmean(cell[one][s] - cell[other][s] for s in both) if both else 0.0


def _within(cell: dict[str, dict[int, float]], method: str, among: Iterable[str]) -> bool:
    best = _best(cell, among)
    differences = [cell[best][s] - cell[method][s] for s in cell[best].keys() & cell[method].keys()]
    if len(differences) < 2:
        return method == best
    return bool(np.mean(differences) <= statistics.stdev(differences) / len(differences) ** 0.5)
