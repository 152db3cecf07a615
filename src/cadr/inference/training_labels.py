"""Whether labels to compare predictions with are those that the run was trained on: such labels a model repeats."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadr.data import validation
from cadr.data.sources.label_names import Names
from cadr.training.signature import InputSpec


class HeldOut(NamedTuple):
    """Labels that the run has held out, so that its model may judge them."""

    labels: int
    disagreements: int


class Passing:
    """Labels as they pass by, block by block; in the end it knows whether they were the run's own."""

    def __init__(self, run: Path, spec: InputSpec) -> None:
        path = run / validation.FILE
        self.spec, self.held_out = spec, validation.read(path) if path.exists() else np.empty(0, dtype=np.int64)
        self.rows, self.counts = 0, Counter[str]()
        self.known = self.wrong = 0  # of the rows held out

    def add(self, labels: Names, wrong: NDArray[np.bool_]) -> None:
        """The next rows: their labels, blank where there is none, and where the model disagrees."""
        first, last = np.searchsorted(self.held_out, [self.rows, self.rows + len(labels)])
        here = self.held_out[first:last] - self.rows
        self.known += int((labels[here] != "").sum())
        self.wrong += int(wrong[here].sum())
        self.counts.update(labels[labels != ""])
        self.rows += len(labels)

    @property
    def own(self) -> HeldOut | None:
        """None where rows or labels are not those that the run was begun with."""
        counts = Counter(dict(zip(self.spec.class_names, self.spec.labels, strict=True)))
        same = self.rows == self.spec.rows and self.counts == counts and self.known == len(self.held_out)
        return HeldOut(self.known, self.wrong) if same else None
