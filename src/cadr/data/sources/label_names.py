"""Labels of data to predict on, by name: such data may name classes in another order, or classes the model lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.labels import NO_LABEL, label_spelling

Names = NDArray[np.object_]  # a name for every row, blank where the label is missing


def names_of_texts(texts: list[str], classes: tuple[str, ...]) -> Names:
    """A label that spells a class of the model otherwise is called what the class is; others stay what they are."""
    called = dict.fromkeys(NO_LABEL, "") | {label_spelling(name): name for name in classes}
    called |= {name: name for name in classes}
    found = {text: called.get(text, called.get(label_spelling(text), text)) for text in set(texts)}
    return np.array([found[text] for text in texts], dtype=object)


def names_of_numbers(labels: NDArray[Any], names: tuple[str, ...], classes: tuple[str, ...]) -> Names:
    """Numbers are indices into `names`, as they are in training; one beyond them is called by itself."""
    by_number = np.append(names_of_texts(list(names), classes), "")
    inside = (labels >= 0) & (labels < len(names))
    found: Names = by_number[np.where(inside, labels, len(names))]
    for row in np.flatnonzero(labels >= len(names)):
        found[row] = str(labels[row])
    return found
