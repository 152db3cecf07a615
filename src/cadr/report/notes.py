"""What a reader should know before believing the figures, and what decides: use this model, or not yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cadr.diagnosis.contradictions import outside
from cadr.inference.accuracy_notes import (
    OWN_LABELS,
    better_guess,
    caution_about_bias,
    caution_about_number,
    weighted_accuracy,
    wilson,
)
from cadr.inference.evaluation import weighted, weighted_in_words
from cadr.report.labels import Labels
from cadr.report.model_outputs import Look
from cadr.report.runs import ReportedRun, clean
from cadr.training.record import Record
from cadr.training.target import takes_target

_BIAS_ALONE = (
    "Weighted by 1/propensity no single answer is better, so the bias of the labels may be all there is to it."
)


_WIDE = 25.0  # points of an interval, beyond which an accuracy does not say whether a model is any good


class Weight(IntEnum):
    """What follows from a note."""

    STOP = 0  # the model is not to be used as it is
    CHECK = 1  # whether it is any good is not known before somebody has looked
    KNOW = 2


class Note(NamedTuple):
    weight: Weight
    words: str


class Decision(NamedTuple):
    """The note that decides, and the others, those that weigh most first."""

    style: str
    lead: str
    words: str
    others: Sequence[str]


def decide(found: Iterable[Note], runs: Sequence[ReportedRun]) -> Decision:
    """Notes of the same weight keep their order: what comes first in the list decides."""
    ordered = sorted(found, key=lambda note: note.weight)
    weight = ordered[0].weight if ordered else Weight.KNOW
    what = "this model" if len(runs) == 1 else "these models"
    lead = {
        Weight.STOP: f"Do not use {what if len(runs) == 1 else 'every one of ' + what} yet.",
        Weight.CHECK: f"Check this before you use {what}.",
        Weight.KNOW: f"Nothing was found that speaks against using {what}.",
    }[weight]
    if weight == Weight.KNOW:
        return Decision("know", lead, "", [note.words for note in ordered])
    first, *others = ordered
    return Decision(weight.name.lower(), lead, first.words, [note.words for note in others])


def notes(runs: Sequence[ReportedRun], labels: Mapping[str, Labels], looks: Mapping[str, Look]) -> list[Note]:
    """`labels` and `looks` are by the name of a run, of those whose data could be opened."""
    return [
        *_worse_than_a_guess(runs, labels),
        *_exchanged(runs, looks),
        *_contradicted(runs, labels, looks),
        *_of_the_labels(labels),
        *_weighted(runs, labels),
        *_few_judged(runs),
        *_unfinished(runs),
        *_warnings(runs),
    ]


def _of_the_labels(labels: Mapping[str, Labels]) -> list[Note]:
    """What the diagnosis warns of: weighty where its figures, and with them any accuracy on all rows, mean nothing."""
    found = {}
    for one in labels.values():
        unsure = one.diagnosis is not None and (one.diagnosis.weak or bool(one.diagnosis.other_than_class))
        for words in one.warnings:
            few = words.startswith(("At most one label", "Under "))
            found[words] = Note(Weight.KNOW if few or not unsure else Weight.CHECK, words)
    return sorted(found.values(), key=lambda note: note.weight)


def _few_judged(runs: Sequence[ReportedRun]) -> list[Note]:
    found: list[Note] = []
    on = []
    for run in runs:
        accuracy, last = run.accuracy, run.last_evaluation
        if accuracy is None or last is None:
            continue
        on.append(last["on"])
        if words := caution_about_number(accuracy, run.num_judged, last["on"]):
            low, high = wilson(accuracy / 100.0, run.num_judged)
            weight = Weight.CHECK if 100 * (high - low) > _WIDE else Weight.KNOW
            found.append(Note(weight, f"Accuracy of {run.name} is {accuracy:.1f} %. {words}"))
    biases = dict.fromkeys(caution_about_bias(where) for where in on)  # once for all runs
    return [*found, *(Note(Weight.KNOW, words) for words in biases if words)]


def _worse_than_a_guess(runs: Sequence[ReportedRun], labels: Mapping[str, Labels]) -> list[Note]:
    found = []
    for run in runs:
        last = run.last_evaluation
        if last is None or (better := better_guess(last)) is None:
            continue
        always, guess = clean(run.spec.class_names[better[0]]), better[1]
        alone = _is_better_weighted(last, labels.get(run.name))
        words = (
            f"The last accuracy of {run.name}, {last['accuracy']:.1f} %, is below the {guess:.1f} % that always "
            f"answering {always} would reach on the {run.judged_on} examples. "
            + (_BIAS_ALONE if alone else _presumed(run))
        )
        found.append(Note(Weight.KNOW if alone else Weight.STOP, words))
    return found


def _is_better_weighted(last: Record, labels: Labels | None) -> bool:
    """Whether the commonest class is no better an answer where classes count as in all rows."""
    if last["on"] not in OWN_LABELS or labels is None or not labels.trusted:
        return False
    rows = [sum(row) / phi for row, phi in zip(last["confusion"], labels.propensity.tolist(), strict=True)]
    guess: float = 100 * max(rows) / sum(rows)
    return weighted_accuracy(last["confusion"], labels.propensity.tolist()) >= guess


def _presumed(run: ReportedRun) -> str:
    """What a run takes the classes' shares for, which it may have taken wrongly."""
    if not takes_target(type(run.config.algorithm)):
        return "See what cadr diagnose says of the labels."
    shares = "those of its --target-prior" if run.config.algorithm.target_prior else "equal ones"
    return (
        f"The run presumes class shares, {shares}: see whether cadr diagnose estimates others, and train with "
        "--target-prior if so, or if you know better."
    )


def _weighted(runs: Sequence[ReportedRun], labels: Mapping[str, Labels]) -> list[Note]:
    """What labels that are biased say of all rows, where a diagnosis says how biased they are."""
    found = []
    for run in runs:
        last = run.last_evaluation
        if last is None or run.name not in labels or not labels[run.name].trusted:
            continue
        one = labels[run.name]
        intervals = [c.propensity_interval for c in one.diagnosis.classes] if one.diagnosis else []
        if (accuracy := weighted(last, one.estimated, intervals)) is not None:
            weight = Weight.CHECK if accuracy.high - accuracy.low > _WIDE else Weight.KNOW
            found.append(Note(weight, weighted_in_words(last, accuracy, run.name)))
    return found


def _contradicted(runs: Sequence[ReportedRun], labels: Mapping[str, Labels], looks: Mapping[str, Look]) -> list[Note]:
    """Predicted shares that the diagnosis contradicts, where nobody knows the truth that would show it."""
    found = []
    for run in runs:
        diagnosis = labels[run.name].diagnosis if run.name in labels else None
        if run.is_benchmark or diagnosis is None or not len(looks[run.name].unlabelled):
            continue
        predicted = looks[run.name].on_unlabelled.argmax(1)
        shares = np.bincount(predicted, minlength=len(diagnosis.classes)) / len(predicted)
        if words := outside(diagnosis, shares.tolist()):
            found.append(Note(Weight.CHECK, clean(words) if len(runs) == 1 else f"{run.name}: {clean(words)}"))
    return found


def _exchanged(runs: Sequence[ReportedRun], looks: Mapping[str, Look]) -> list[Note]:
    found = []
    for run in runs:
        pairs = looks[run.name].exchanged if run.name in looks else []
        names = [" and ".join(clean(run.spec.class_names[c]) for c in pair) for pair in pairs]
        if names:
            words = (
                f"In {run.name} these classes seem to have swapped labels: {', '.join(names)}. Examples that the model "
                "assigns to one lie around the labelled examples of the other. Look at some, label a few more, or "
                "train with --renaming."
            )
            found.append(Note(Weight.STOP, words))
    return found


def _unfinished(runs: Sequence[ReportedRun]) -> list[Note]:
    return [
        Note(
            Weight.CHECK,
            f"{run.name} is not finished: it is at step {run.step:,} of {run.config.training.steps:,}.",
        )
        for run in runs
        if run.finished is None
    ]


def _warnings(runs: Sequence[ReportedRun]) -> list[Note]:
    return [
        Note(weight, clean(record["message"]) if len(runs) == 1 else f"{run.name}: {clean(record['message'])}")
        for run in runs
        for kind, weight in (("warning", Weight.CHECK), ("renaming", Weight.KNOW))
        for record in run.of(kind)
    ]
