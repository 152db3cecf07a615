"""What a reader should know before believing the figures."""

from __future__ import annotations

from collections.abc import Sequence

from cadr.evaluate.report.run import Run, clean
from cadr.train.judged import caution_about_bias, caution_about_number


def notes(runs: Sequence[Run]) -> list[str]:
    return [*_few_judged(runs), *_unfinished(runs), *_warnings(runs)]


def _few_judged(runs: Sequence[Run]) -> list[str]:
    found, on = [], []
    for run in runs:
        accuracy, last = run.accuracy, run.last_evaluation
        if accuracy is None or last is None:
            continue
        on.append(last["on"])
        if words := caution_about_number(accuracy, run.num_judged, last["on"]):
            found.append(f"Accuracy of {run.name} is {accuracy:.1f} %. {words}")
    biases = dict.fromkeys(caution_about_bias(where) for where in on)  # once for all runs
    return [*found, *filter(None, biases)]


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
