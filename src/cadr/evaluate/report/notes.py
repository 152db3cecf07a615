"""What a reader should know before believing the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cadr.evaluate.report.labels import Labels
from cadr.evaluate.report.look import Look
from cadr.evaluate.report.run import Run, clean
from cadr.train.judged import caution_about_bias, caution_about_number, over_classes, weighted_accuracy


def notes(runs: Sequence[Run], labels: Mapping[str, Labels], looks: Mapping[str, Look]) -> list[str]:
    """`labels` and `looks` are by the name of a run, of those whose data could be opened."""
    return [
        *_few_judged(runs),
        *_weighted(runs, labels),
        *_exchanged(runs, looks),
        *_unfinished(runs),
        *_warnings(runs),
    ]


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


def _weighted(runs: Sequence[Run], labels: Mapping[str, Labels]) -> list[str]:
    """What labels that are biased say of all rows, where a diagnosis says how biased they are."""
    found = []
    for run in runs:
        last = run.last_evaluation
        if last is None or last["on"] != "validation" or run.name not in labels or not labels[run.name].diagnosed:
            continue
        accuracy = weighted_accuracy(last["confusion"], labels[run.name].propensity.tolist())
        found.append(
            f"Weighted by 1/propensity, so that {over_classes(last['recall'])} count as in all rows, accuracy of "
            f"{run.name} is {accuracy:.1f} %."
        )
    return found


def _exchanged(runs: Sequence[Run], looks: Mapping[str, Look]) -> list[str]:
    found = []
    for run in runs:
        pairs = looks[run.name].exchanged if run.name in looks else []
        names = [" and ".join(clean(run.spec.class_names[c]) for c in pair) for pair in pairs]
        if names:
            found.append(
                f"In {run.name} these classes seem to bear each other's names: {', '.join(names)}. What the model "
                "takes for one lies around the labelled examples of the other. Look at some, label a few more, or "
                "train with --renaming."
            )
    return found


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
        for record in (*run.of("warning"), *run.of("renaming"))
    ]
