"""Predictions for any amount of data, written as they are made: a row for every row, in the same order.

Columns: what identified the rows, `predicted` and `probability`, the next best classes (`predicted_2`, …), and where
the data have labels `label` and `disagrees`. The file appears under its name when it is complete.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cadr.data import validation
from cadr.data.sources.base import Block, Blocks
from cadr.data.sources.labels import Names
from cadr.data.sources.parsing import UnknownCategories
from cadr.data.sources.registry import open_blocks
from cadr.errors import ConfigError, DataError
from cadr.inference.overwrite_guard import check_not_overwritten
from cadr.inference.population import ESTIMATED, Shift, estimated_shift, shift_to, training_shares
from cadr.inference.prediction_file import PredictionFile, check_suffix
from cadr.inference.predictor import Predictor
from cadr.training.signature import InputSpec
from cadr.utils.files import expand_home
from cadr.utils.memory import kept_from_the_second
from cadr.utils.shard import Shard


class Predicted(NamedTuple):
    """What a finished prediction amounts to."""

    rows: int
    labelled: int
    disagreements: int
    lacking: Counter[str]  # labels that name a class which the model does not have; all of them are disagreements
    counts: dict[str, int]  # rows predicted to be of each class
    caution: str  # what to know before believing the probabilities; blank: nothing
    unseen: dict[str, UnknownCategories]  # by column: words that the training table does not have
    held_out: HeldOut | None  # of the labels, if they are the run's own: with the others it was trained
    shift: Shift | None = None  # to the class shares that were asked for
    shift_note: str = ""  # what to know about it; blank: nothing


class Judged(NamedTuple):
    """Some rows and what the model makes of them."""

    piece: Any  # of the file
    counts: NDArray[np.int64]  # of rows predicted to be of each class
    labels: Names | None
    wrong: NDArray[np.bool_] | None
    unseen: Mapping[str, UnknownCategories]


@dataclass(frozen=True)
class Judge:
    """From a block of rows to a piece of the file, in whichever process."""

    predictor: Predictor
    file: PredictionFile
    top: int
    shift: Shift | None

    def __call__(self, block: Block) -> Judged:
        best, probabilities = self._best(block)
        names = np.array(self.predictor.class_names, dtype=object)
        wrong = None if block.labels is None else (block.labels != "") & (block.labels != names[best[:, 0]])
        counts = np.bincount(best[:, 0], minlength=len(names))
        return Judged(self.file.piece(block, best, probabilities, wrong), counts, block.labels, wrong, block.unseen)

    def _best(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        probabilities = self.predictor.probabilities(block.examples)
        if self.shift is not None:
            probabilities = torch.from_numpy(self.shift(probabilities.double().cpu().numpy())).float()
        found = probabilities.topk(self.top, dim=1)
        return found.indices.cpu().numpy(), found.values.cpu().numpy()


@dataclass(frozen=True)
class Rows:
    """What to predict on, to be opened where it is read."""

    data: str
    labels: Path | None
    label_column: str | None
    root: str | Path | None

    def open(self, predictor: Predictor) -> Blocks:
        wanted = predictor.wanted()
        if self.label_column is not None:
            wanted = dataclasses.replace(wanted, label_column=self.label_column)
        return open_blocks(self.data, wanted, self.labels, self.root)


class Engine(Protocol):
    """What predicts elsewhere than here: every block of all the rows, in order."""

    def __call__(self, judge: Judge, rows: Rows, opened: Blocks) -> Generator[Judged, None, None]: ...


def predict_file(
    run: Path | str,
    data: str,
    out: Path | str,
    *,
    top: int = 3,
    labels: Path | None = None,
    label_column: str | None = None,
    prior: str | None = None,
    root: str | Path | None = None,
    device: str = "auto",
    model: nn.Module | None = None,
    shard: Shard | None = None,
    engine: Engine | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Predicted:
    """Predict every row of `data` with the run in folder `run`; `out` ends in .csv or .parquet.

    `label_column` is where labels to compare with stand, if not in the column that the run was trained with. `prior`
    are the classes' shares among these rows, as `cat=.2,dog=.8`, or `estimated`: from the rows themselves, which are
    read twice then. Of a `shard` only these rows are predicted; CSV files of all shards, one after another, are the
    file of all rows: the first one alone has the names of the columns.
    """
    out = Path(out)
    check_suffix(out)
    if top < 1:
        raise ConfigError(f"top must be at least 1, got {top}")
    for given in (expand_home(data), labels):
        if given is not None and out.exists() and given.exists() and out.samefile(given):
            raise ConfigError(f"{out} is what to predict on; write the predictions to another file")
    if prior == ESTIMATED and (shard is not None or engine is not None):
        raise ConfigError(
            "prior: shares are estimated from all rows in one process; estimate them there on some of the rows, and "
            "give them here as CLASS=SHARE,…"
        )
    predictor = Predictor.load(run, model, device)
    check_not_overwritten(predictor.config, Path(run), out)
    rows = Rows(data, labels, label_column, root)
    opened = rows.open(predictor)
    if label_column is not None and not opened.has_labels:
        raise DataError(f"{labels or data} has no labels in a column {label_column!r}; see how its columns are called")
    shift, shift_note = _shift(prior, run, predictor, lambda: rows.open(predictor).blocks)
    top = min(top, len(predictor.class_names))
    file = PredictionFile.of(out, predictor.class_names, opened, top)
    taken = [name for name in opened.columns if name in file.new]
    if taken:
        raise DataError(f"{data} has a column {taken[0]!r} already, which the predictions need; rename it")
    judge = Judge(predictor, file, top, shift)
    passing = Passing(Path(run), predictor.spec) if opened.has_labels else None
    tally = Tally(predictor.class_names, passing)
    # The file is begun first: that it cannot be written should not show when all has been predicted.
    with file.open(out, begins=shard is None or shard.is_first) as write:
        answers: AbstractContextManager[Iterator[Judged]] = (
            _here(judge, opened, shard) if engine is None else closing(engine(judge, rows, opened))
        )
        with answers as judged:
            for one in judged:
                write(one.piece)
                tally.add(one)
                progress(tally.rows)
    by_class = dict(zip(predictor.class_names, tally.counts.tolist(), strict=True))
    own = None if passing is None else passing.own
    caution = predictor.calibration.caution
    return Predicted(
        tally.rows,
        tally.labelled,
        tally.disagreements,
        tally.lacking,
        by_class,
        caution,
        tally.unseen,
        own,
        shift,
        shift_note,
    )


@contextmanager
def _here(judge: Judge, opened: Blocks, shard: Shard | None) -> Iterator[Iterator[Judged]]:
    parts = range(opened.parts) if shard is None else shard.part(opened.parts)
    last = None if shard is None or shard.is_last else parts.stop  # how many parts there are may be an estimate
    with kept_from_the_second(opened.read(parts.start, last)) as blocks:
        yield map(judge, blocks)


class Tally:
    """Of all rows so far."""

    def __init__(self, classes: tuple[str, ...], passing: Passing | None) -> None:
        self.classes, self.passing = classes, passing
        self.counts = np.zeros(len(classes), dtype=np.int64)
        self.rows = self.labelled = self.disagreements = 0
        self.lacking: Counter[str] = Counter()
        self.unseen: dict[str, UnknownCategories] = {}

    def add(self, judged: Judged) -> None:
        self.rows += int(judged.counts.sum())
        self.counts += judged.counts
        if judged.labels is not None and judged.wrong is not None and self.passing is not None:
            self.passing.add(judged.labels, judged.wrong)
            self.labelled += int((judged.labels != "").sum())
            self.disagreements += int(judged.wrong.sum())
            self.lacking.update(label for label in judged.labels[judged.wrong] if label not in self.classes)
        for name, more in judged.unseen.items():
            self.unseen[name] = self.unseen.get(name, UnknownCategories()) + more


def _shift(
    prior: str | None, run: Path | str, predictor: Predictor, blocks: Callable[[], Iterator[Block]]
) -> tuple[Shift | None, str]:
    if prior is None:
        return None, ""
    before, note = training_shares(run, predictor)
    if prior != ESTIMATED:
        return shift_to(prior, before, predictor.class_names), note
    with kept_from_the_second(blocks()) as parts:
        found = (predictor.probabilities(block.examples).double().cpu().numpy() for block in parts)
        return estimated_shift(found, before), note


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
