"""Labels that may be wrong: of those held out what the model contradicts, of those trained on what their like do.

A label that it was trained on the model repeats, right or wrong; what tells then: `estimate/label_swap.py`. Either way
a model that is often mistaken contradicts many labels that are right: which ones are shown is decided by
`estimate/label_errors.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cadr.estimate.label_errors import wrong_labels
from cadr.report.examples import Example, called, guesses_of, picture, row_of
from cadr.report.model_outputs import Look
from cadr.training.prepare import CROSS_FITTED
from cadr.utils.text import counted

_FALSE_ALARMS = 0.026  # of right labels trained on that are doubted where none is wrong: benchmarks/wrong_labels.md


@dataclass(frozen=True)
class Doubts:
    words: str
    examples: Sequence[Example]  # the surest first


def doubts(look: Look, names: tuple[str, ...], most: int) -> list[Doubts]:
    """One for the part that the run is judged on, if there is one, and one for what it was trained on."""
    pool = look.pool
    if look.on_part is None or pool.test_examples is None or pool.test_labels is None:
        return [_of_trained(look, names, most, 0.0)]
    labels, rows = pool.test_labels, np.arange(len(pool.test_labels))
    what = "test label" if look.part == "test" else "label"
    held_out = {"test": "", CROSS_FITTED: ", each left out in its turn,"}.get(look.part, " held out")
    found = wrong_labels(look.on_part, labels)
    words = f"Of {counted(len(labels), what)}{held_out} the model contradicts {found.contradicted or 'none'}. "
    told = _Told(look.part, rows, labels, look.on_part, np.zeros(len(rows), dtype=np.bool_))
    words += _outcome(found.contradicted, len(found.places), found.right_after_all)
    judged = _shown(look, names, most, words, told, found.places)
    if look.part == CROSS_FITTED:
        return [judged]
    mistaken = (found.contradicted - len(found.places)) / len(labels)
    return [judged, _of_trained(look, names, most, mistaken)]


def _outcome(contradicted: int, shown: int, right: float) -> str:
    """How many may be wrong, and how many of these are expected to be right."""
    if not shown:
        return "That is no more than its own mistakes explain, so no label is shown." if contradicted else ""
    return f"{shown:,} may be wrong; about {max(1, round(right)):,} of {shown:,} will be right after all."


@dataclass(frozen=True, eq=False)
class _Told:
    """Labels of one part, and what is said against them, row by row."""

    part: str
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    names: NDArray[np.float64]  # (n, C) probabilities, or how often a name is borne around
    by_neighbours: NDArray[np.bool_]


def _of_trained(look: Look, names: tuple[str, ...], most: int, mistaken: float) -> Doubts:
    """`mistaken` is the share of labels held out that the model is wrong about itself.

    Of right labels as many are doubted where classes overlap as much, and _FALSE_ALARMS anyway: if no more are, none is
    shown.
    """
    labels = look.pool.labels[look.labelled]
    doubted = look.on_labelled.argmax(1) != labels  # those that it has not learned
    words = f"Of {counted(len(labels), 'label')} trained on, which a model repeats whether they are right or wrong, "
    said, by_neighbours = look.on_labelled, np.zeros(len(labels), dtype=np.bool_)
    if look.around is None:
        words += f"it contradicts {doubted.sum():,}. Nothing else here can tell which are wrong. "
    else:
        by_neighbours = look.around.doubtful & ~doubted
        doubted = doubted | by_neighbours
        said = np.where(by_neighbours[:, None], look.around.names, said)
        words += (
            f"{doubted.sum():,} are contradicted by it, or by what it predicts for the unlabelled examples that are "
            "nearest to them in its intermediate features. "
        )
    right = max(_FALSE_ALARMS, mistaken) * len(labels)
    places = np.flatnonzero(doubted) if doubted.sum() > right else np.empty(0, dtype=np.int64)
    places = places[np.argsort(-said[places].max(1), kind="stable")]
    words += _outcome(int(doubted.sum()), len(places), right)
    return _shown(look, names, most, words, _Told("labelled", look.labelled, labels, said, by_neighbours), places)


def _shown(look: Look, names: tuple[str, ...], most: int, words: str, told: _Told, places: NDArray[np.int64]) -> Doubts:
    examples = []
    for i in places[:most]:
        row = int(told.rows[i])
        examples.append(
            Example(
                called(look, told.part, row),
                picture(look, told.part, row),
                names[int(told.labels[i])],
                told.part,
                guesses_of(told.names[i], names),
                by_neighbours=bool(told.by_neighbours[i]),
                row=row_of(look, told.part, row),
            )
        )
    return Doubts(words.strip() + (f" The {most:,} surest are shown." if len(places) > most else ""), examples)
