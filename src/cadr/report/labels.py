"""The labels themselves: how many each class has, how many it ought to have, and how likely its examples get one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cadr.data.pool import MISSING
from cadr.diagnosis.diagnose import diagnose
from cadr.diagnosis.result import Diagnosis
from cadr.diagnosis.text import closing
from cadr.errors import DataError
from cadr.report.charts import Bar, bars
from cadr.report.model_outputs import Look
from cadr.report.runs import ReportedRun, clean
from cadr.report.sections import OPEN, UNKNOWN, Classes, Figure, Key
from cadr.utils.text import percent

_DISTRIBUTION = "Labelled against estimated distribution"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labels:
    """What is known about the labels of one data set."""

    of: str  # the runs it holds for, where the report has others too
    verdict: str
    propensity: Floats  # (C,) to reckon with, not to show: what is not estimated is what a run believes
    estimated: Sequence[float | None]  # (C,) by the diagnosis; None where nothing can be said
    figures: Sequence[Figure]
    paragraphs: Sequence[str]
    warnings: Sequence[str]
    diagnosis: Diagnosis | None = None

    @property
    def diagnosed(self) -> bool:
        return any(phi is not None for phi in self.estimated)

    @property
    def trusted(self) -> bool:
        """Whether anything may be reckoned with the propensities: not where the diagnosis itself says no."""
        return self.diagnosed and not (self.diagnosis is not None and self.diagnosis.weak)


def labels_of(look: Look, runs: Sequence[ReportedRun], of: str, diagnosis: Diagnosis | None = None) -> Labels:
    """The diagnosis of the labels that `runs` were trained on, or that there can be none."""
    try:
        diagnosis = diagnosis or diagnose(dataclasses.replace(look.pool, labels=look.labels))
    except DataError as error:
        return _undiagnosed(look, runs, of, clean(str(error)))
    sure = [c.propensity for c in diagnosis.classes]
    classes = Classes(runs[0].class_names, runs[0].spec.labels, sure)
    propensity = np.array([run if phi is None else phi for phi, run in zip(sure, look.propensity, strict=True)])
    warned = {f"Warning: {warning}" for warning in diagnosis.warnings}
    return Labels(
        of=of,
        verdict=clean(diagnosis.verdict),
        propensity=propensity,
        estimated=sure,
        figures=[_distribution(diagnosis, runs, classes), _propensities(diagnosis, classes)],
        paragraphs=[clean(line) for line in closing(diagnosis) if line not in warned],
        warnings=[clean(warning) for warning in diagnosis.warnings],
        diagnosis=diagnosis,
    )


def _distribution(diagnosis: Diagnosis, runs: Sequence[ReportedRun], classes: Classes) -> Figure:
    groups = []
    for index, c in enumerate(diagnosis.classes):
        share = Bar(_percent(c.share), "estimated", _both(c.share_interval))
        groups.append([Bar(_percent(c.labelled_share), "labelled"), share, *_predicted(runs, index)])
    keys = [Key("bar labelled", "share of the labels"), Key("bar estimated", "estimated share of the unlabelled")]
    caption = (
        "In percent, with 90 % intervals. Outlined: P̂, the class distribution that a run's model predicts at its end "
        "on unlabelled examples."
    )
    return _bars(_DISTRIBUTION, caption + _unless_known(diagnosis), classes, groups, [*keys, *_run_keys(runs)])


def _propensities(diagnosis: Diagnosis, classes: Classes) -> Figure:
    groups = [[Bar(_percent(c.propensity), "estimated", _both(c.propensity_interval))] for c in diagnosis.classes]
    caption = (
        "The share of a class's examples that are labelled, in percent, with 90 % intervals; the axis is logarithmic."
    )
    caption += _unless_known(diagnosis)
    return _bars("Propensity of every class", caption, classes, groups, [Key("bar estimated", "propensity")], log=True)


def _unless_known(diagnosis: Diagnosis) -> str:
    return "" if all(c.propensity for c in diagnosis.classes) else f" {UNKNOWN}"


def _undiagnosed(look: Look, runs: Sequence[ReportedRun], of: str, reason: str) -> Labels:
    """What is left to say. A run's own P̂ is no ground for a verdict: with one label of each class it is often wrong."""
    names, counts = runs[0].class_names, np.array(runs[0].spec.labels, dtype=np.float64)
    complete = bool((look.labels != MISSING).all())
    verdict = "All rows are labelled." if complete else f"The labels could not be diagnosed: {reason.rstrip('.')}."
    shares = 100.0 * counts / counts.sum()
    groups = [[Bar(float(shares[c]), "labelled"), *_predicted(runs, c)] for c in range(len(names))]
    caption = "In percent. The outlined bars are the class distribution that each run predicts on unlabelled examples."
    keys = [Key("bar labelled", "share of the labels"), *_run_keys(runs)]
    figure = _bars(_DISTRIBUTION, caption, Classes(names, runs[0].spec.labels), groups, keys)
    return Labels(of, verdict, look.propensity, [None] * len(names), [figure], [], [])


def _bars(
    title: str, caption: str, classes: Classes, groups: Sequence[Sequence[Bar]], keys: Sequence[Key],
    log: bool = False,
) -> Figure:  # fmt: skip
    """By bias; of many classes the rest is folded."""
    names = classes.names
    if len(names) > 1:
        caption += f" Classes {classes.by} come first."
    written = _propensity if log else percent
    legend = [key.words for key in keys]
    order = classes.order

    def drawn(chosen: Sequence[int]) -> list[tuple[str, Markup]]:
        some = [groups[c] for c in chosen]
        return [("", bars(title, [names[c] for c in chosen], some, legend, written, log, groups))] if some else []

    shown = keys if len(keys) > 1 else ()
    more = f"{len(order[OPEN:])} more classes"
    return Figure(title, caption, drawn(order[:OPEN]), keys=shown, folded=drawn(order[OPEN:]), of_folded=more)


def _propensity(value: float) -> str:
    return f"{value:.1f} %" if value >= 1 else f"{value:.2g} %"


def _predicted(runs: Sequence[ReportedRun], c: int) -> list[Bar]:
    return [Bar(100.0 * run.prior[c], f"run s{run.style}") for run in runs]


def _run_keys(runs: Sequence[ReportedRun]) -> list[Key]:
    return [Key(f"bar run s{run.style}", f"P̂ of {run.name}") for run in runs]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _both(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (100.0 * interval[0], 100.0 * interval[1])
