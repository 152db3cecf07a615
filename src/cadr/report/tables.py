"""The tables of the report: one line per run, one line per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cadr.report.label_figures import UNKNOWN
from cadr.report.run_facts import Run
from cadr.report.sections import Classes
from cadr.training.accuracy_notes import over_classes

Table = dict[str, Any]  # columns, rows, and of a table of classes a note


def summaries(runs: Sequence[Run]) -> list[Table]:
    """What each run came to; a table for each length, because a shorter run is no answer to a longer one."""
    lengths = sorted({run.step for run in runs})
    return [_summary([run for run in runs if run.step == length]) for length in lengths]


def _summary(runs: Sequence[Run]) -> Table:
    columns = ["run", "method", "accuracy, %", "geometric mean, %", "weakest class, %", "judged on", "steps", "seconds"]
    rows = []
    for run in runs:
        scores = run.scores()
        found = [value for value in scores["recall"] or () if value is not None]
        figures = (run.accuracy, scores["gm"], min(found, default=None))
        judged = f"{run.num_judged:,} {run.judged_on}" if run.num_judged else "–"
        if len(found) < len(scores["recall"] or ()):
            judged += f", {over_classes(scores['recall'])}"
        rows.append([run.name, run.algorithm, *map(written, figures), judged, f"{run.step:,}", f"{run.seconds():,.0f}"])
    return {"columns": columns, "rows": rows}


def by_class(
    runs: Sequence[Run], known: Sequence[Run], classes: Classes, propensity: Sequence[float | None] | None
) -> Table:
    """The last value of every curve; pseudo-labels are judged in `known` runs, whose truth somebody has.

    `propensity` is what the diagnosis says. What a run believes is no substitute: it would be taken for the same.
    """
    columns = ["class"]
    if classes.counts is not None:
        columns.append("labels")
    if propensity is not None:
        columns.append("propensity, %")
    for run in runs:
        of = f"{run.name}: " if len(runs) > 1 else ""
        pseudo = ("coverage, %", "precision, %") if run in known else ()
        columns += [of + what for what in ("recall, %", *pseudo, "threshold", "P̂, %")]
    rows = []
    for c, name in enumerate(classes.names):
        row = [name]
        if classes.counts is not None:
            row.append(str(classes.counts[c]))
        if propensity is not None:
            phi = propensity[c]
            row.append("–" if phi is None else f"{100 * phi:.3g}")
        for run in runs:
            row += _last(run, c, run in known)
        rows.append(row)
    return {"columns": columns, "rows": rows, "note": UNKNOWN if propensity is not None and None in propensity else ""}


def _last(run: Run, c: int, known: bool) -> list[str]:
    trained, judged = run.of("train")[-1], run.last_evaluation
    return [
        "–" if judged is None else written(judged["recall"][c]),
        *(written(trained[what][c]) for what in ("coverage", "precision") if known),
        written(trained["thresholds"][c], 3),
        written(100.0 * trained["prior"][c]),
    ]


def written(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
