"""The labels themselves: how many each class has, how many it ought to have, and how likely its examples get one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cadr.evaluate.report.figures import Bar, bars
from cadr.evaluate.report.look import Look
from cadr.evaluate.report.run import Run
from cadr.evaluate.report.sections import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labels:
    """What is known about the labels of one data set."""

    of: str  # which data, where the report has several
    verdict: str
    propensity: Floats  # (C,)
    figures: Sequence[Figure]
    paragraphs: Sequence[str] = ()
    warnings: Sequence[str] = field(default=())


def labels_of(look: Look, runs: Sequence[Run], names: tuple[str, ...], of: str) -> Labels:
    """Labelled against estimated distribution; `runs` are those trained on these labels."""
    counts = np.bincount(look.labels[look.labels >= 0], minlength=len(names)).astype(np.float64)
    return from_prior(look, runs, names, counts, of)


def from_prior(look: Look, runs: Sequence[Run], names: tuple[str, ...], counts: Floats, of: str) -> Labels:
    """What a run alone can say: propensities from its last P̂."""
    most, least = int(look.propensity.argmax()), int(look.propensity.argmin())
    ratio = look.propensity[most] / look.propensity[least]
    verdict = (
        f"According to {runs[0].name}, examples of class {names[most]} are labelled {ratio:.3g} times as often as "
        f"those of class {names[least]}."
    )
    groups = [[Bar(100.0 * counts[c] / counts.sum(), "labelled"), *_predicted(runs, c)] for c in range(len(names))]
    legend = ["labelled", *(f"P̂ of {run.name}" for run in runs)]
    drawn = bars("Labelled against estimated distribution", names, groups, legend, lambda v: f"{v:.1f} %")
    caption = "Share of the labels (grey) and of all examples, as each run predicts it (outlined), in percent."
    return Labels(
        of, verdict, look.propensity, [Figure("Labelled against estimated distribution", caption, [("", drawn)])]
    )


def _predicted(runs: Sequence[Run], c: int) -> list[Bar]:
    return [Bar(100.0 * run.of("train")[-1]["prior"][c], f"run s{run.style}") for run in runs]
