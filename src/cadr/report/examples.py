"""Single examples to look at: pictures of each class, and those whose missing labels are worth asking for."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cadr.config import Config
from cadr.data.pool import MISSING, spread
from cadr.data.sources.more_labels import TABLES, raw_rows
from cadr.errors import shortened
from cadr.report.model_outputs import Look
from cadr.report.runs import clean
from cadr.utils.files import expand_home

_SIDE = 96  # pixels; larger pictures are made smaller, smaller ones are enlarged by the page
_LETTERS = 160  # of a text
_CELLS, _COLUMN, _CELL = 8, 30, 80  # columns of a row, letters of a column's name and of a cell
_GUESSES = 3
_TINY = 1e-12  # below this a probability is rounding, and its logarithm no loss
CLASSES = 12  # whose pictures are shown, of those with the fewest labels
LABELLED, PREDICTED = 3, 6  # pictures of each
_SMALL_SIDE = 64  # pixels


@dataclass(frozen=True)
class Example:
    name: str
    picture: str | None  # data: address of a PNG file
    label: str | None
    part: str  # labelled, unlabelled, or what the run is judged on
    guesses: tuple[tuple[str, float], ...]  # class and probability, the most likely first
    share: float | None = None  # of the variance that its label would remove
    by_neighbours: bool = False  # whose names the guesses are, not the model's own
    row: int | None = None  # of the data
    cells: Sequence[tuple[str, str]] = ()  # of a table: column and value


def worth_labelling(look: Look, propensity: NDArray[np.float64], names: tuple[str, ...], most: int) -> list[Example]:
    """The unlabelled examples whose labels would remove most of the variance; see `variance_removed`."""
    removed = variance_removed(look.on_unlabelled, propensity)
    total = removed.sum()
    shown = []
    for i in np.argsort(-removed, kind="stable")[:most]:
        if removed[i] > 0:
            row = int(look.unlabelled[i])
            guesses = guesses_of(look.on_unlabelled[i], names)
            share = float(removed[i] / total)
            image = picture(look, "unlabelled", row)
            name = called(look, "unlabelled", row)
            shown.append(Example(name, image, None, "unlabelled", guesses, share, row=row))
    return shown


def row_of(look: Look, part: str, row: int) -> int | None:
    """In the data; None of a test set of its own."""
    if part in ("labelled", "unlabelled"):
        return row
    return None if look.rows_of_part is None else int(look.rows_of_part[row])


def with_cells(config: Config, look: Look, groups: Sequence[Sequence[Example]]) -> list[list[Example]]:
    """The examples with what stands in their rows, where the data are a table: "row 8886" tells nobody anything.

    Of an array with names for its columns the numbers are shown, of one without there is nothing to see.
    """
    wanted = sorted({example.row for group in groups for example in group if example.row is not None})
    cells: dict[int, tuple[tuple[str, str], ...]] = {}
    path = expand_home(config.data)
    if path.suffix.lower() in TABLES and path.is_file():
        found = raw_rows(path, wanted, config.source.label_column)
        cells = {row: tuple(zip(found.header, of_row, strict=True)) for row, of_row in found.cells.items()}
    elif look.pool.feature_names is not None and look.pool.kind == "features":
        cells = {
            row: tuple(
                (name, f"{value:.6g}")
                for name, value in zip(look.pool.feature_names, look.pool.examples[row].tolist(), strict=True)
            )
            for row in wanted
        }
    return [[replace(e, cells=_told(cells.get(-1 if e.row is None else e.row, ()))) for e in group] for group in groups]


def _told(cells: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first that are filled in, and no longer than can be read."""
    filled = [(clean(name), clean(" ".join(value.split()))) for name, value in cells if value.strip()]
    return [(shortened(name, _COLUMN), shortened(value, _CELL)) for name, value in filled[:_CELLS]]


def guesses_of(probabilities: NDArray[np.float64], names: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """The most likely classes."""
    best = np.argsort(-probabilities, kind="stable")[:_GUESSES]
    return tuple((names[int(c)], float(probabilities[c])) for c in best)


def called(look: Look, part: str, row: int) -> str:
    """What the row is called: a file, or a number in the data or in the part that the run is judged on."""
    if part not in ("labelled", "unlabelled"):
        if look.rows_of_part is None:
            return f"{part.replace('_', ' ')} example {row}"
        row = int(look.rows_of_part[row])
    called = "" if look.pool.identifiers is None else clean(look.pool.identifiers[row])
    text = look.pool.text(row)
    return (called or f"row {row}") + ("" if text is None else f": {_beginning(text)}")


def _beginning(text: str) -> str:
    plain = clean(" ".join(text.split()))
    return f"“{plain}”" if len(plain) <= _LETTERS else f"“{plain[:_LETTERS]}…”"


def picture(look: Look, part: str, row: int, side: int = _SIDE) -> str | None:
    """The example as an image inside the page, if it is one."""
    example = _pixels(look, part, row, side)
    if example is None:
        return None
    image = Image.fromarray(np.ascontiguousarray(example))
    image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()


def _pixels(look: Look, part: str, row: int, side: int) -> NDArray[Any] | None:
    if part in ("labelled", "unlabelled"):
        return look.pool.picture(row, side)
    if look.rows_of_part is not None:
        return look.pool.picture(int(look.rows_of_part[row]), side)
    tested = look.pool.test_examples
    return tested[row] if tested is not None and tested.ndim == 4 else None


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
    """What the classes' names stand for: labelled pictures beside unlabelled ones that are called by the name.

    With few labels a class may end up with another's name, and no figure can say so where there are no labels to tell;
    a person sees it at a glance. The classes with the fewest labels come first; none where examples are no pictures.
    """
    if not look.pool.has_pictures or not len(look.unlabelled):
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
                _pictures(look, labelled[:LABELLED]),
                len(of_class),
                # of the surer half, for the surest alone may all look alike
                _pictures(look, spread(surest[: (len(surest) + 1) // 2], PREDICTED)),
            )
        )
    return found


def _pictures(look: Look, rows: np.ndarray) -> list[Shown]:
    drawn = [(called(look, "unlabelled", int(row)), picture(look, "unlabelled", int(row), _SMALL_SIDE)) for row in rows]
    return [Shown(name, image) for name, image in drawn if image is not None]


def variance_removed(probabilities: NDArray[np.float64], propensity: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) how much of the variance of the doubly robust loss each unlabelled row's label would remove.

    Of (n, C) probabilities and (C,) propensities. The estimate of the mean loss over n rows is
    (1/n) Σ ĝ_i + (r_i/φ_i)(ℓ_i − ĝ_i), with r_i = 1 where row i is labelled, which happens with probability
    φ_i = φ(y_i), ℓ_i its loss and ĝ_i the loss imputed for it. Given the rows, only the r_i are random, and
    independent, so its variance is a sum with one term per row:

        (1/n²) Σ v_i,    v_i = (1 − φ_i)/φ_i · (ℓ_i − ĝ_i)²

    Asking for the label of row i makes φ_i = 1 and removes v_i, no more and no less. The terms add up, so the k rows
    with the largest v_i are the best k to label together. (A labelled row shows its own v_i, and stands for 1/φ_i rows
    like it: that is where the familiar (1 − φ)/φ² · residual² of the variance *estimate* comes from.) For a row without
    a label v_i depends on the class it would turn out to have, so it is averaged over what that class may be, given
    that the row is unlabelled: P(y | x, missing) ∝ P(y | x)(1 − φ_y). The loss is the cross-entropy −log P(y | x), and
    what is imputed is its mean under the model.
    """
    loss = -np.log(np.maximum(probabilities, _TINY))
    residual = loss - (probabilities * loss).sum(1, keepdims=True)
    missing = probabilities * (1.0 - propensity)
    total = missing.sum(1, keepdims=True)
    missing = np.divide(missing, total, out=np.zeros_like(missing), where=total > 0)
    odds = (1.0 - propensity) / propensity
    removed: NDArray[np.float64] = (missing * odds * residual**2).sum(1)
    return removed
