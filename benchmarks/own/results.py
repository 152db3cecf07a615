"""The tables of `own_data.py`: what every method gets on every set, and how often it is best."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from benchmarks.cells import markdown
from benchmarks.own.methods import SIMPLE
from benchmarks.own.missing import MISSINGNESS
from benchmarks.own.sets import DECIDING, FINAL

Record = dict[str, Any]
Cell = tuple[str, str]  # set, missingness
Values = dict[Cell, dict[str, dict[int, float]]]  # cell -> method -> seed -> value
BASE = "logistic_balanced"
DEFAULT = "ensemble"


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
        parts += ["", *_verdict(of)]
        for missing in MISSINGNESS:
            some = [record for record in of if record["missing"] == missing]
            if some:
                parts += ["", f"### Labels missing {missing}", "", _each(some, "accuracy"), "", _summary(some)]
    return "\n".join(parts) + "\n"


class Standing(NamedTuple):
    """How a method stands to others on one set with labels missing in one way."""

    ahead: float  # of the best of the simple methods, the one with the highest mean in this cell
    near: bool  # no method is better by more than a standard error of the difference


def standings(records: Iterable[Record], method: str) -> dict[Cell, Standing]:
    """Of all cells that the method has run on; simple methods that have not run with all of its seeds do not count."""
    found = {}
    for cell, of in values(records, "accuracy").items():
        seeds = of.get(method, {}).keys()
        simple = {
            name: {s: of[name][s] for s in seeds} for name in SIMPLE if seeds and of.get(name, {}).keys() >= seeds
        }
        if simple:
            ahead = _difference(of | simple, method, best_of(simple, SIMPLE))
            found[cell] = Standing(ahead, _within(of, method, of))
    return found


def leads(records: Iterable[Record], method: str) -> dict[str, tuple[float, float]]:
    """Another method -> how far this one is ahead of it, in the mean over cells, and the standard error of that."""
    accuracy = values(records, "accuracy")
    others = sorted({other for of in accuracy.values() for other in of} - {method})
    found = {}
    for other in others:
        gaps = [_difference(of, method, other) for of in accuracy.values() if of.keys() >= {method, other}]
        error = statistics.stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else float("nan")
        found[other] = (statistics.fmean(gaps), error)
    return found


def _verdict(records: Sequence[Record]) -> list[str]:
    """The default against the best simple method of every cell, and against each method everywhere."""
    lines, fixed = [], []
    for title, kinds in (("by class", MISSINGNESS[:2]), ("at random", MISSINGNESS[2:])):
        some = [record for record in records if record["missing"] in kinds]
        found = standings(some, DEFAULT)
        if not found:
            return []
        ahead = [one.ahead for one in found.values()]
        worst = min(found, key=lambda cell: found[cell].ahead)
        near = sum(one.near for one in found.values())
        lines.append(
            [f"labels missing {title}", str(len(found)), f"{statistics.fmean(ahead):+.1f}", f"{min(ahead):+.1f}",
             f"{worst[0]}, {worst[1]}", str(sum(a < -2 for a in ahead)), f"{near} of {len(found)}"]
        )  # fmt: skip
        fixed.append(leads(some, DEFAULT))
    head = [DEFAULT, "cells", "ahead of the best simple one", "least", "there", "more than 2 behind", "best or near"]
    rows = [
        [other, *(f"{f[other][0]:+.1f} ± {f[other][1]:.1f}" if other in f else "·" for f in fixed)]
        for other in dict.fromkeys((*SIMPLE, *fixed[0], *fixed[1]))
        if any(other in f for f in fixed)
    ]
    against = markdown([f"{DEFAULT} ahead of", "labels missing by class", "at random"], rows)
    return [markdown(head, lines), "", against]


def _about(command: str) -> str:
    return (
        f"Written by `{command}`. Judged on the true classes of the unlabelled rows; mean ± standard error over the "
        "seeds that a method has run with. A cell is a set with labels missing in one way. The best simple method is "
        "that of the seven of scikit-learn with the highest mean in the cell, chosen by the truth, as nobody could who "
        "needs it; ahead: the mean difference to it, seed by seed; least, and behind: where that is worst. Best or "
        "near, and within 1 SE: no method that has run with two seeds or more is better by more than the standard "
        "error of its difference, seed by seed. Seconds are a processor's, on one core. Best: the highest mean. Lead: "
        "the mean difference to balanced logistic regression. Log loss is that after one temperature, chosen on the "
        "other half of the rows. Balanced gradient boosting has run with fewer seeds on texts and not on pictures, "
        "whose hundreds of columns take it minutes, and networks with fewer seeds everywhere."
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
        best = [c for c in cells if best_of(accuracy[c], methods) == method]
        near = [c for c in cells if _within(accuracy[c], method, methods)]
        with_simple = [c for c in cells if accuracy[c].keys() & SIMPLE.keys()]
        behind = [_difference(accuracy[c], best_of(accuracy[c], SIMPLE), method) for c in with_simple] or [0.0]
        lines.append(
            [
                method,
                str(len(cells)),
                f"{_over(accuracy, cells, method):.1f}",
                f"{_over(recall, cells, method):.1f}",
                f"{_over(loss, cells, method):.3f}",
                _lead([accuracy[c] for c in cells], method),
                f"{-statistics.fmean(behind):+.1f}",
                str(len(best)),
                str(len(near)),
                f"{max(behind):.1f}",
                f"{_over(seconds, cells, method):.1f}",
            ]
        )
    head = ["", "sets", "accuracy", "macro recall", "log loss", "lead", "ahead", "best", "within 1 SE", "behind"]
    return markdown([*head, "seconds"], lines)


def _lead(cells: Sequence[dict[str, dict[int, float]]], method: str) -> str:
    gaps = [_difference(cell, method, BASE) for cell in cells if BASE in cell]
    return f"{statistics.fmean(gaps):+.1f}" if gaps else "·"


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


def best_of(cell: dict[str, dict[int, float]], among: Iterable[str]) -> str:
    """The method with the highest mean."""
    return max((m for m in among if m in cell), key=lambda m: statistics.fmean(cell[m].values()))


def _difference(cell: dict[str, dict[int, float]], one: str, other: str) -> float:
    """How far one method's mean lies above another's, over the seeds that both have run with."""
    both = cell[one].keys() & cell[other].keys()
    return statistics.fmean(cell[one][s] - cell[other][s] for s in both) if both else 0.0


def _within(cell: dict[str, dict[int, float]], method: str, among: Iterable[str]) -> bool:
    """Whether the method with the greatest lead over this one, seed by seed, leads by no more than a standard error."""
    rivals = []
    for other in among:
        shared = cell.get(other, {}).keys() & cell[method].keys()
        if other != method and len(shared) > 1:
            rivals.append([cell[other][seed] - cell[method][seed] for seed in shared])
    if not rivals:
        return True
    gaps = max(rivals, key=statistics.fmean)
    return bool(statistics.fmean(gaps) <= statistics.stdev(gaps) / len(gaps) ** 0.5)
