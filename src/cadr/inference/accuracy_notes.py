"""What an accuracy is worth that was judged on few examples, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cadr.errors import CheckpointError
from cadr.training.prepare import CROSS_FITTED, VALIDATION
from cadr.training.record import Record
from cadr.training.run_folder import RunFolder
from cadr.utils.text import counted, printable

FEW = 300  # examples, below which an accuracy is not worth its decimals
UNKNOWN = 0  # examples: nobody is judged on none
_LIKE = "on rows like the labelled ones"
_BIASED = (
    f"Held-out labels are as biased as all labels: this is the accuracy {_LIKE}, where rarely labelled classes hardly "
    "count."
)
_BIASED_ALL = (
    f"The labels are a biased sample: this is the accuracy {_LIKE}, where rarely labelled classes hardly count."
)
OWN_LABELS = (VALIDATION, CROSS_FITTED)
_NAMES = {
    "test": ("test example", ""),
    "held_out": ("held-out row", ""),
    VALIDATION: ("held-out label", ""),
    CROSS_FITTED: ("label", ", each left out in its turn"),
}


def caution(accuracy: float, examples: int, on: str) -> str:
    """What to know before believing the accuracy of one run; blank where there is nothing to say."""
    return " ".join(filter(None, (caution_about_number(accuracy, examples, on), caution_about_bias(on))))


def caution_about_number(accuracy: float, examples: int, on: str) -> str:
    """With a dozen labels held out "100 %" means little, and somebody has to say so."""
    if examples == UNKNOWN or (examples >= FEW and on != CROSS_FITTED):
        return ""
    low, high = wilson(accuracy / 100.0, examples)
    where = f" {_LIKE}" if on in OWN_LABELS else ""
    only = "only " if examples < FEW else ""
    return (
        f"It is evaluated on {only}{_named(examples, on)}; the 95 % interval{where} is {100 * low:.0f} to "
        f"{100 * high:.0f} %."
    )


def caution_about_bias(on: str) -> str:
    return _BIASED if on == VALIDATION else _BIASED_ALL if on == CROSS_FITTED else ""


def caution_about_differences(judged: Sequence[tuple[str, int, str]]) -> str:
    """The same where runs are compared: by method, on how many of what each is evaluated."""
    _, examples, on = judged[0]
    if on not in OWN_LABELS:
        return ""
    if len({on for _, _, on in judged}) > 1 and UNKNOWN not in {
        n for _, n, _ in judged
    }:  # a network holds labels out, what is fitted in one go does not
        where = dict.fromkeys(f"{name} on {_named(examples, on)}" for name, examples, on in judged)
        return f"Not evaluated on the same labels: {', '.join(where)}. {_BIASED_ALL}"
    if examples == UNKNOWN:
        return caution_about_bias(on)
    each = f"All are evaluated on {_named(examples, on)}, each worth {100 / examples:.1f} points."
    return f"{each} {caution_about_bias(on)}"


def better_guess(evaluation: Record) -> tuple[int, float] | None:
    """The commonest class judged on and its share in percent, where always answering it would have been more accurate.

    Figures are compared as they are written: 33.3 % is not below 33.3 %, whatever the digits that are not shown.
    """
    judged = [sum(row) for row in evaluation["confusion"]]
    most = max(judged)
    guess = round(100 * most / sum(judged), 1)
    return (judged.index(most), guess) if round(evaluation["accuracy"], 1) < guess else None


def caution_about_guess(evaluation: Record, names: Sequence[str]) -> str:
    """That such a model tells less than no model would; blank where it tells more."""
    found = better_guess(evaluation)
    if found is None:
        return ""
    always, share = found
    judged = _named(sum(map(sum, evaluation["confusion"])), evaluation["on"])
    return f"Always answering {printable(names[always])} would be right for {share:.1f} % of the {judged}."


def _named(examples: int, on: str) -> str:
    noun, rest = _NAMES[on]
    return counted(examples, noun) + rest


def over_classes(recall: Sequence[float | None]) -> str:
    """What a mean over the classes is over, where some have no example to be judged on."""
    judged = sum(value is not None for value in recall)
    return "the classes" if judged == len(recall) else f"{judged} of {len(recall)} classes"


def zero_recall(recall: Sequence[float | None]) -> str:
    """How a class that was lost enters the geometric mean, if one was; otherwise the mean itself would be 0."""
    return f"In the geometric mean a recall of 0 counts as {1 / len(recall):.2g} %." if 0.0 in recall else ""


def weighted_accuracy(confusion: Sequence[Sequence[int]], propensity: Sequence[float]) -> float:
    """In percent, where an example stands for 1/propensity rows of its class: so classes count as in all rows."""
    right = sum(row[c] / phi for c, (row, phi) in enumerate(zip(confusion, propensity, strict=True)))
    return 100.0 * right / sum(sum(row) / phi for row, phi in zip(confusion, propensity, strict=True))


def last_evaluation(out: Path) -> Record | None:
    """The last one of a run; None if it has none, or its records are lost."""
    with suppress(CheckpointError):
        return next((r for r in reversed(RunFolder(out).checked_records()) if r["kind"] == "evaluation"), None)
    return None


def examples_judged(out: Path) -> int:
    """Examples that the accuracies of a run are shares of; UNKNOWN where its records are lost."""
    last = last_evaluation(out)
    return UNKNOWN if last is None else sum(map(sum, last["confusion"]))


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share of n; unlike the simple one it does not shrink to a point at 100 %."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)  # which rounding alone can pass
