"""Predictions for any amount of data, written as they are made: a row for every row, in the same order.

Columns: what identified the rows, `predicted` and `probability`, the next best classes (`predicted_2`, …), and where
the data have labels `label` and `disagrees`. The file appears under its name when it is complete.
"""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cadr.data import validation
from cadr.data.sources.base import Block, Blocks
from cadr.data.sources.labels import Names
from cadr.data.sources.parsing import UnknownCategories, python_values
from cadr.data.sources.registry import open_blocks
from cadr.errors import ConfigError, DataError
from cadr.inference.overwrite_guard import check_not_overwritten
from cadr.inference.population import ESTIMATED, Shift, estimated_shift, shift_to, training_shares
from cadr.inference.predictor import Predictor
from cadr.training.signature import InputSpec
from cadr.utils.files import atomic_write, expand_home
from cadr.utils.memory import kept_from_the_second
from cadr.utils.optional_imports import optional_import


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
    progress: Callable[[int], None] = lambda rows: None,
) -> Predicted:
    """Predict every row of `data` with the run in folder `run`; `out` ends in .csv or .parquet.

    `label_column` is where labels to compare with stand, if not in the column that the run was trained with. `prior`
    are the classes' shares among these rows, as `cat=.2,dog=.8`, or `estimated`: from the rows themselves, which are
    read twice then.
    """
    out = Path(out)
    if out.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise ConfigError(f"{out}: predictions are written to a file that ends in .csv or .parquet")
    if top < 1:
        raise ConfigError(f"top must be at least 1, got {top}")
    for given in (expand_home(data), labels):
        if given is not None and out.exists() and given.exists() and out.samefile(given):
            raise ConfigError(f"{out} is what to predict on; write the predictions to another file")
    predictor = Predictor.load(run, model, device)
    check_not_overwritten(predictor.config, Path(run), out)
    wanted = predictor.wanted()
    if label_column is not None:
        wanted = dataclasses.replace(wanted, label_column=label_column)
    opened = open_blocks(data, wanted, labels, root)
    if label_column is not None and not opened.has_labels:
        raise DataError(f"{labels or data} has no labels in a column {label_column!r}; see how its columns are called")
    shift, shift_note = _shift(prior, run, predictor, lambda: open_blocks(data, wanted, labels, root).blocks)
    top = min(top, len(predictor.class_names))
    new = _new_columns(top, opened.has_labels)
    taken = [name for name in opened.columns if name in new]
    if taken:
        raise DataError(f"{data} has a column {taken[0]!r} already, which the predictions need; rename it")
    names = np.array(predictor.class_names, dtype=object)
    counts = np.zeros(len(names), dtype=np.int64)
    rows = labelled = disagreements = 0
    lacking: Counter[str] = Counter()
    unseen: dict[str, UnknownCategories] = {}
    passing = Passing(Path(run), predictor.spec) if opened.has_labels else None
    writer = _csv if out.suffix.lower() == ".csv" else _parquet
    with kept_from_the_second(opened.blocks) as blocks, writer(out, opened, new) as write:
        for block in blocks:
            best, probabilities = _best(predictor, block, top, shift)
            wrong = None if block.labels is None else (block.labels != "") & (block.labels != names[best[:, 0]])
            write(block.kept, names, best, probabilities, block.labels, wrong)
            rows += len(best)
            counts += np.bincount(best[:, 0], minlength=len(names))
            if block.labels is not None and wrong is not None and passing is not None:
                passing.add(block.labels, wrong)
                labelled, disagreements = labelled + int((block.labels != "").sum()), disagreements + int(wrong.sum())
                lacking.update(label for label in block.labels[wrong] if label not in predictor.class_names)
            unseen |= {name: unseen.get(name, UnknownCategories()) + more for name, more in block.unseen.items()}
            progress(rows)
    by_class = dict(zip(predictor.class_names, counts.tolist(), strict=True))
    own = None if passing is None else passing.own
    caution = predictor.calibration.caution
    return Predicted(rows, labelled, disagreements, lacking, by_class, caution, unseen, own, shift, shift_note)


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


def _best(
    predictor: Predictor, block: Block, top: int, shift: Shift | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    probabilities = predictor.probabilities(block.examples)
    if shift is not None:
        probabilities = torch.from_numpy(shift(probabilities.double().cpu().numpy())).float()
    found = probabilities.topk(top, dim=1)
    return found.indices.cpu().numpy(), found.values.cpu().numpy()


def _new_columns(top: int, has_labels: bool) -> list[str]:
    names = [f"{what}{'' if k == 1 else f'_{k}'}" for k in range(1, top + 1) for what in ("predicted", "probability")]
    return [*names, "label", "disagrees"] if has_labels else names


@contextmanager
def _csv(out: Path, opened: Blocks, new: list[str]) -> Iterator[Callable[..., None]]:
    # a file name that is no UTF-8 is written as the bytes it is
    with atomic_write(out) as path, path.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([*opened.columns, *new])

        def write(kept: list[Any], names: Any, best: Any, probabilities: Any, labels: Any, wrong: Any) -> None:
            columns = [
                column if isinstance(column, list) else python_values(column, f"column {name!r}")
                for column, name in zip(kept, opened.columns, strict=True)
            ]
            for k in range(best.shape[1]):
                columns.append(names[best[:, k]].tolist())
                columns.append(list(map("{:.6f}".format, probabilities[:, k].tolist())))
            if opened.has_labels:
                columns.append(labels.tolist())
                columns.append(np.where(labels == "", "", np.where(wrong, "yes", "no")).tolist())
            lines.writerows(zip(*columns, strict=True))

        yield write


@contextmanager
def _parquet(out: Path, opened: Blocks, new: list[str]) -> Iterator[Callable[..., None]]:
    what = f"writing {out}, where .csv would not,"
    pa, parquet = (optional_import(name, what, "parquet") for name in ("pyarrow", "pyarrow.parquet"))
    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {"probability": pa.float32(), "disagrees": pa.bool_()}
    other = pa.int64() if opened.numbered else pa.string()
    fields = [(name, opened.types.get(name, other)) for name in opened.columns]
    fields += [(name, kinds.get(name.split("_")[0], text)) for name in new]
    schema = pa.schema(fields)
    with atomic_write(out) as path, parquet.ParquetWriter(path, schema) as file:

        def write(kept: list[Any], names: Any, best: Any, probabilities: Any, labels: Any, wrong: Any) -> None:
            words = pa.array(names.tolist(), pa.string())

            def named(indices: Any) -> Any:
                return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)), words)

            types = [schema.field(i).type for i in range(len(kept))]
            try:
                columns = [c if isinstance(c, pa.Array) else pa.array(c, t) for c, t in zip(kept, types, strict=True)]
            except UnicodeEncodeError as error:
                raise DataError(f"{error.object!r} is no UTF-8, which Parquet needs; write a .csv file") from None
            for k in range(best.shape[1]):
                columns += [named(best[:, k]), pa.array(probabilities[:, k])]
            if opened.has_labels:
                missing = labels == ""
                columns.append(pa.array(labels, pa.string(), mask=missing).dictionary_encode())
                columns.append(pa.array(wrong, mask=missing))
            file.write_batch(pa.record_batch(columns, schema=schema))

        yield write


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
