"""Labels that may be wrong: of those held out what the model contradicts, of those trained on what their like do.

A label that it was trained on the model repeats, right or wrong; what tells then: `estimate/doubtful.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cadr.report.examples import Example, called, guesses_of, picture
from cadr.report.model_outputs import Look
from cadr.training.prepare import CROSS_FITTED
from cadr.utils.text import counted


@dataclass(frozen=True)
class Doubts:
    words: str
    examples: Sequence[Example]  # the surest first


def doubts(look: Look, names: tuple[str, ...], most: int) -> list[Doubts]:
    """One for the part that the run is judged on, if there is one, and one for what it was trained on."""
    trained = _of_trained(look, names, most)
    pool = look.pool
    if look.on_part is None or pool.test_examples is None or pool.test_labels is None:
        return [trained]
    labels, rows = pool.test_labels, np.arange(len(pool.test_labels))
    doubted = look.on_part.argmax(1) != labels
    what = "test label" if look.part == "test" else "label"
    held_out = {"test": "", CROSS_FITTED: ", each left out in its turn,"}.get(look.part, " held out")
    words = f"Of {counted(len(labels), what)}{held_out} the model contradicts {doubted.sum():,}."
    if 2 * doubted.sum() > len(labels):
        words += " A model that is mistaken so often is no reason to doubt a label, nor are its predictions around one."
    told = _Told(look.part, rows, labels, look.on_part, np.zeros(len(rows), dtype=np.bool_))
    judged = _shown(look, names, most, words, told, doubted)
    return [judged] if look.part == CROSS_FITTED else [judged, trained]


@dataclass(frozen=True, eq=False)
class _Told:
    """Labels of one part, and what is said against them, row by row."""

    part: str
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    names: NDArray[np.float64]  # (n, C) probabilities, or how often a name is borne around
    by_neighbours: NDArray[np.bool_]


def _of_trained(look: Look, names: tuple[str, ...], most: int) -> Doubts:
    labels = look.pool.labels[look.labelled]
    doubted = look.on_labelled.argmax(1) != labels  # those that it has not learned
    words = f"Of {counted(len(labels), 'label')} trained on, which a model repeats whether they are right or wrong, "
    said, by_neighbours = look.on_labelled, np.zeros(len(labels), dtype=np.bool_)
    if look.around is None:
        words += f"it contradicts {doubted.sum():,}. Nothing else here can tell which are wrong."
    else:
        by_neighbours = look.around.doubtful & ~doubted
        doubted = doubted | by_neighbours
        said = np.where(by_neighbours[:, None], look.around.names, said)
        words += (
            f"{doubted.sum():,} may be wrong: it predicts another class more often among the unlabelled examples that "
            "are nearest to them in its intermediate features."
        )
    told = _Told("labelled", look.labelled, labels, said, by_neighbours)
    return _shown(look, names, most, words, told, doubted)


def _shown(
    look: Look, names: tuple[str, ...], most: int, words: str, told: _Told, doubted: NDArray[np.bool_]
) -> Doubts:
    places = np.flatnonzero(doubted)
    places = places[np.argsort(-told.names[places].max(1), kind="stable")]
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
            )
        )
    return Doubts(words + (f" The {most:,} surest are shown." if len(places) > most else ""), examples)
