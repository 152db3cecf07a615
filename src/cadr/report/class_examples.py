"""What the classes' names stand for: labelled pictures of a class beside unlabelled ones that are called by its name.

With few labels a class may end up with another's name, and no figure can say so where there are no labels to tell; a
person sees it at a glance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cadr.data.pool import MISSING
from cadr.data.unlabelled import spread
from cadr.report.examples import called, picture
from cadr.report.model_outputs import Look

CLASSES = 12  # that are shown, of those with the fewest labels
LABELLED, PREDICTED = 3, 6  # pictures of each
_SIDE = 64  # pixels


@dataclass(frozen=True)
class Shown:
    called: str
    picture: str


@dataclass(frozen=True)
class Named:
    """One class."""

    name: str
    labels: int
    labelled: Sequence[Shown]
    predictions: int  # among the unlabelled examples that were looked at
    predicted: Sequence[Shown]


def named(look: Look, names: tuple[str, ...]) -> list[Named]:
    """The classes with the fewest labels first; none where examples are no pictures."""
    if look.pool.examples.ndim != 4 or not len(look.unlabelled):
        return []
    labels = look.labels
    counts = np.bincount(labels[labels != MISSING], minlength=len(names))
    guess, sure = look.on_unlabelled.argmax(1), look.on_unlabelled.max(1)
    found = []
    for c in np.argsort(counts, kind="stable")[:CLASSES]:
        labelled = np.flatnonzero(labels == c)
        labelled = labelled[np.argsort(look.pool.labels[labelled] == MISSING, kind="stable")]  # those held out last
        of_class = np.flatnonzero(guess == c)
        surest = look.unlabelled[of_class[np.argsort(-sure[of_class], kind="stable")]]
        found.append(
            Named(
                names[int(c)],
                int(counts[c]),
                _shown(look, labelled[:LABELLED]),
                len(of_class),
                # of the surer half, for the surest alone may all look alike
                _shown(look, spread(surest[: (len(surest) + 1) // 2], PREDICTED)),
            )
        )
    return found


def _shown(look: Look, rows: np.ndarray) -> list[Shown]:
    drawn = [(called(look, "unlabelled", int(row)), picture(look.pool.examples[row], _SIDE)) for row in rows]
    return [Shown(name, image) for name, image in drawn if image is not None]
