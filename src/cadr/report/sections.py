"""The figures and tables about training: what they show, of which runs, and in what words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cadr.inference.accuracy_notes import over_classes
from cadr.report.charts import (
    Bar,
    Extent,
    Series,
    bars,
    calibration_error,
    extent_of,
    lines,
    matrix,
    reliability,
    reliability_diagram,
)
from cadr.report.model_outputs import Look
from cadr.report.names import fit
from cadr.report.runs import STYLES, ReportedRun
from cadr.training.record import Record
from cadr.utils.text import percent

UNKNOWN = "Shares and propensities of classes with at most one label cannot be estimated."
PANELS, OPEN_PANELS = 24, 12  # classes that get a panel of their own, and those that need no click
_PANEL_LETTERS = 18  # of a class's name over its panel
OPEN = 20  # classes that are shown without a click where each takes a line


class Key(NamedTuple):
    """A line of the legend: the classes of the sign, and what it means."""

    style: str
    words: str


@dataclass(frozen=True)
class Figure:
    """One or several drawings under one heading; `across` sets them as small panels, `folded` are shown on a click."""

    title: str
    caption: str
    drawings: Sequence[tuple[str, Markup]]  # what the drawing is of (blank: no need to say), the drawing
    across: bool = False
    keys: Sequence[Key] = ()
    folded: Sequence[tuple[str, Markup]] = ()
    of_folded: str = ""


def run_keys(runs: Sequence[ReportedRun]) -> list[Key]:
    """What the lines mean, where there is more than one."""
    return [Key(f"line s{run.style}", run.name) for run in runs] if len(runs) > 1 else []


@dataclass(frozen=True)
class Classes:
    """The classes of a report, and in which order they are shown."""

    names: tuple[str, ...]
    counts: Sequence[int] | None  # labels of each
    propensity: Sequence[float | None] | None = None  # by the diagnosis, where there is one

    @property
    def order(self) -> list[int]:
        """By bias: first the classes that are labelled most seldom, or, if nobody knows, with the fewest labels."""
        counts = self.counts or [0] * len(self.names)
        known = self.propensity or [None] * len(self.names)

        def rank(c: int) -> tuple[bool, float, int]:
            phi = known[c]
            return phi is None, 0.0 if phi is None else phi, counts[c]

        return sorted(range(len(self.names)), key=rank)

    @property
    def by(self) -> str:
        """What the order is by, in words."""
        if self.propensity is not None and any(phi is not None for phi in self.propensity):
            return "labelled most seldom"
        return "with the fewest labels"

    @property
    def shown(self) -> list[int]:
        """Those with a panel of their own."""
        return self.order[:PANELS]

    def label(self, c: int) -> str:
        return self.names[c] if self.counts is None else f"{self.names[c]} ({self.counts[c]})"

    def labels(self, chosen: Sequence[int]) -> list[str]:
        """The same in the room of a panel."""
        short = [line for (line,) in fit([self.names[c] for c in chosen], _PANEL_LETTERS)]
        counts = self.counts
        return [name if counts is None else f"{name} ({counts[c]})" for c, name in zip(chosen, short, strict=True)]


def learning(runs: Sequence[ReportedRun], classes: Classes) -> list[Figure]:
    """Accuracy, and what it is made of."""
    judged = [run for run in _with_steps(runs) if run.last_evaluation is not None]
    if not judged:
        return []
    where = " or ".join(sorted({run.judged_on for run in judged}))
    accuracy = [run.series("evaluation", lambda r: r["accuracy"]) for run in judged]
    mean = [run.series("evaluation", lambda r: r["gm"]) for run in judged]
    overall = [
        ("Accuracy, %", lines("Accuracy over time", accuracy, _percent(accuracy), " %")),
        (
            "Geometric mean of the recalls, %",
            lines("Geometric mean of the recalls over time", mean, _percent(mean), " %"),
        ),
    ]
    return [
        Figure(
            "Accuracy over time",
            f"On the {where} examples, of the averaged model. The geometric mean over the C classes falls when one is "
            "lost, which accuracy may hide; a recall of 0 counts as 1/(100 C) in it.",
            overall,
            keys=run_keys(judged),
        ),
        _panels(judged, classes, "evaluation", "recall", "Recall of every class over time, %",
                "The share of the class's examples that the model finds.", (0.0, 100.0)),
    ]  # fmt: skip


def pseudo_labels(runs: Sequence[ReportedRun], classes: Classes) -> list[Figure]:
    """How many unlabelled examples take part, and how many of those rightly; of runs whose truth is known."""
    runs = _with_steps(runs)
    if not runs:
        return []
    return [
        _panels(runs, classes, "train", "coverage", "Pseudo-label coverage of every class, %",
                "The share of the class's examples with a used pseudo-label, right or wrong.", (0.0, 100.0)),
        _panels(runs, classes, "train", "precision", "Pseudo-label precision of every class, %",
                "The share of the used pseudo-labels naming the class that were right.", (0.0, 100.0)),
    ]  # fmt: skip


def beliefs(runs: Sequence[ReportedRun], classes: Classes) -> list[Figure]:
    """What the method itself believes and does."""
    runs = _with_steps(runs)
    if not runs:
        return []
    return [
        _panels(runs, classes, "train", "prior", "P̂, the class distribution the model predicts, %",
                "The moving average of the model's predictions on unlabelled examples.", (0.0, None), scale=100.0),
        _panels(runs, classes, "train", "thresholds", "Threshold of every class",
                "The confidence above which a pseudo-label is used.", (0.0, 1.0), unit=""),
    ]  # fmt: skip


def estimated_shares(runs: Sequence[ReportedRun], classes: Classes) -> list[Figure]:
    """What runs with `--target-prior estimated` took the classes' shares for, and what they are where that is known."""
    told = [run for run in runs if run.of("shares")]
    if not told:
        return []
    known = next((record for run in told for record in run.of("shares")[-1:] if "truth" in record), None)
    curves = {c: [_with_band(run, c) for run in told] for c in classes.shown}
    keys = [*run_keys(told)]
    if known is not None:
        steps = [record["step"] for run in told for record in run.of("shares")]
        for c, group in curves.items():
            group.append(Series("truth", STYLES, [(step, known["truth"][c]) for step in (min(steps), max(steps))]))
        keys = [*(keys or [Key(f"line s{told[0].style}", "estimated")]), Key(f"line s{STYLES}", "the truth")]
    caption = (
        "Of the unlabelled rows, by maximum likelihood under label shift on the neighbours' predictions. Bands are "
        "90 % intervals: training aims at the shares nearest to equal ones that they allow."
    )
    return [_of_classes(classes, curves, "Estimated share of every class, %", caption, (0.0, None), " %", keys)]


def _with_band(run: ReportedRun, c: int) -> Series:
    band = [(record["step"], record["low"][c], record["high"][c]) for record in run.of("shares")]
    return run.series("shares", _entry("share", c, 1.0))._replace(band=band)


def ensembles(runs: Sequence[ReportedRun]) -> list[Figure]:
    """What an ensemble is made of."""
    found = [(run, record) for run in runs for record in run.of("fitted")]
    if not found:
        return []
    drawings = [
        (
            name_of(run, runs),
            bars(
                f"How much each learner of {run.name} counts",
                list(record["members"]),
                [[Bar(100.0 * weight, f"run s{run.style}")] for weight in record["members"].values()],
                ["weight"],
                percent,
            ),
        )
        for run, record in found
    ]
    against = [
        f"{name_of(run, runs) or 'The ensemble'} reaches about {record['weighted_accuracy']:.1f} %, logistic "
        f"regression alone about {record['weighted_accuracy_of_logistic']:.1f} %."
        for run, record in found
    ]
    caption = (
        "The share of the differences between the classes' scores that is each learner's, in percent: learner@what it "
        "sees. Weights are fitted to labels that a learner was not fitted to. Of the labels, each left out in its turn "
        "and weighted as its class is in all rows: " + " ".join(against)
    )
    return [Figure("Weights of the learners", caption, drawings)]


def _with_steps(runs: Sequence[ReportedRun]) -> list[ReportedRun]:
    """Runs that have a curve."""
    return [run for run in runs if not run.config.is_instant]


def mistakes(runs: Sequence[ReportedRun], classes: Classes, looks: dict[str, Look]) -> list[Figure]:
    """What is taken for what, and whether the model knows when it is wrong."""
    drawings = [
        (name_of(run, runs), matrix(f"Confusion matrix of {run.name}", classes.names, run.last_evaluation["confusion"]))
        for run in runs
        if run.last_evaluation is not None
    ]
    caption = "True class down, predicted class across; the darker, the larger the share of the true class."
    figures = [Figure("Confusion matrix", caption, drawings)] if drawings else []
    return figures + _reliability(runs, looks)


def _reliability(runs: Sequence[ReportedRun], looks: dict[str, Look]) -> list[Figure]:
    drawings = []
    for run in runs:
        one = looks.get(run.name)
        if one is None or one.on_part is None or one.pool.test_labels is None:
            continue
        versions: list[tuple[str, NDArray[np.float64], float | None]] = [("", one.on_part, None)]
        if one.calibration.changes and one.on_part_before is not None:
            fitted = one.calibration
            versions = [
                ("before calibration", one.on_part_before, fitted.error_before),
                ("calibrated", one.on_part, fitted.error_after),
            ]
        for what, probabilities, measured in versions:
            right = probabilities.argmax(1) == one.pool.test_labels
            bins = reliability(probabilities.max(1), right)
            words = [w for w in (name_of(run, runs), what) if w]
            title = f"Reliability of {run.name}" + (f", {what}" if what else "")
            error = 100 * calibration_error(bins) if measured is None else measured
            words.append(f"calibration error {error:.1f}\N{NO-BREAK SPACE}%")
            drawings.append((", ".join(words), reliability_diagram(title, bins, run.style)))
    caption = (
        "How often predictions of a given confidence are right; on the dashed line they are calibrated. The "
        "larger the point, the more predictions."
    )
    if any(one.calibration.changes for one in looks.values()):
        caption += (
            " Calibration was fitted to the examples shown. Its errors weight them by inverse propensity, and each is "
            "judged by a fit to the others."
        )
    caption = " ".join([caption, *calibration_cautions(runs, looks)])
    return [Figure("Reliability", caption, drawings)] if drawings else []


def calibration_cautions(runs: Sequence[ReportedRun], looks: dict[str, Look]) -> list[str]:
    """What the runs' calibrations ask the reader to mind, each sentence once; with several runs, of whom it is said."""
    of: dict[str, list[str]] = {}
    for run in runs:
        if run.name in looks and (words := looks[run.name].calibration.caution):
            of.setdefault(words, []).append(run.name)
    return [words if len(names) == len(runs) else f"{', '.join(names)}: {words}" for words, names in of.items()]


def _panels(
    runs: Sequence[ReportedRun], classes: Classes, kind: str, field: str, title: str, caption: str,
    ends: tuple[float | None, float | None], scale: float = 1.0, unit: str = " %",
) -> Figure:  # fmt: skip
    """One small chart per class with all the runs in it."""
    curves = {c: [run.series(kind, _entry(field, c, scale)) for run in runs] for c in classes.shown}
    return _of_classes(classes, curves, title, caption, ends, unit, run_keys(runs))


def _of_classes(
    classes: Classes, curves: dict[int, list[Series]], title: str, caption: str,
    ends: tuple[float | None, float | None], unit: str, keys: Sequence[Key],
) -> Figure:  # fmt: skip
    """One small chart per class, all on the same axes."""
    extent = extent_of([s for group in curves.values() for s in group], *ends)
    plain = title.removesuffix(", %")
    short = dict(zip(curves, classes.labels(list(curves)), strict=True))
    drawings = [
        ("", lines(classes.label(c), group, extent, unit, small=True, of=plain, short_title=short[c]))
        for c, group in curves.items()
    ]
    if classes.counts is not None:
        caption += " In brackets: labels of the class."
    if len(classes.names) > PANELS:
        caption += f" Shown are the {PANELS} classes {classes.by}, of {len(classes.names)}."
    now, later = (drawings, []) if len(drawings) <= OPEN else (drawings[:OPEN_PANELS], drawings[OPEN_PANELS:])
    return Figure(title, caption, now, True, keys, later, f"{len(later)} more classes")


def _entry(field: str, c: int, scale: float) -> Callable[[Record], float | None]:
    return lambda record: None if record[field][c] is None else scale * record[field][c]


def _percent(series: Sequence[Series]) -> Extent:
    extent = extent_of(series)
    return extent._replace(low=max(0.0, extent.low), high=min(100.0, extent.high))


def name_of(run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    """Said only where there are several."""
    return run.name if len(runs) > 1 else ""


Table = dict[str, Any]  # columns, rows, and of a table of classes a note


def summaries(runs: Sequence[ReportedRun]) -> list[Table]:
    """What each run came to; a table for each length, because a shorter run is no answer to a longer one."""
    lengths = sorted({run.step for run in runs})
    return [_summary([run for run in runs if run.step == length]) for length in lengths]


def _summary(runs: Sequence[ReportedRun]) -> Table:
    columns = [
        "run",
        "method",
        "accuracy, %",
        "geometric mean, %",
        "weakest class, %",
        "evaluated on",
        "steps",
        "seconds",
    ]
    rows = []
    for run in runs:
        scores = run.scores()
        found = [value for value in scores["recall"] or () if value is not None]
        figures = (run.accuracy, scores["gm"], min(found, default=None))
        judged = f"{run.num_judged:,} {run.judged_on}" if run.num_judged else "–"
        if len(found) < len(scores["recall"] or ()):
            judged += f", {over_classes(scores['recall'])}"
        rows.append([run.name, run.algorithm, *map(written, figures), judged, _steps(run), f"{run.seconds():,.0f}"])
    return {"columns": columns, "rows": rows}


def _steps(run: ReportedRun) -> str:
    return "–" if run.config.is_instant else f"{run.step:,}"


def by_class(runs: Sequence[ReportedRun], known: Sequence[ReportedRun], classes: Classes) -> Table:
    """The last value of every curve; pseudo-labels are judged in `known` runs, whose truth somebody has.

    Propensities are what the diagnosis says. What a run believes is no substitute: it would be taken for the same.
    """
    propensity = classes.propensity
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
    for c in classes.order:
        row = [classes.names[c]]
        if classes.counts is not None:
            row.append(str(classes.counts[c]))
        if propensity is not None:
            phi = propensity[c]
            row.append("–" if phi is None else f"{100 * phi:.3g}")
        for run in runs:
            row += _last(run, c, run in known)
        rows.append(row)
    note = UNKNOWN if propensity is not None and None in propensity else ""
    return {"columns": columns, "rows": rows[:OPEN], "folded": rows[OPEN:], "note": note}


def _last(run: ReportedRun, c: int, known: bool) -> list[str]:
    last, judged = next(iter(reversed(run.of("train"))), None), run.last_evaluation
    return [
        "–" if judged is None else written(judged["recall"][c]),
        *("–" if last is None else written(last[what][c]) for what in ("coverage", "precision") if known),
        "–" if last is None else written(last["thresholds"][c], 3),
        written(100.0 * run.prior[c]),
    ]


def written(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
