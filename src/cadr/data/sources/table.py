"""Tables of features, numbers, dates or words, with a label column: what CSV and Parquet have in common.

To train on, a table is read as plain numbers first; if it is more, all of its cells are looked at, and read again. To
predict on, columns are found by name, in whatever order they come.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool, contents_hash
from cadr.data.raw import Embedded, Texts, embed_pool
from cadr.data.sources.base import Block, Options, PredictionDataError, Wanted
from cadr.data.sources.columns import Column, encode
from cadr.data.sources.csv_file import LABEL_HINT, column
from cadr.data.sources.labels import class_order, index_labels, names_of_texts
from cadr.data.sources.parsing import (
    UNSEEN,
    Cells,
    TableError,
    UnknownCategories,
    Where,
    arrow_cells,
    cells_as_texts,
    values,
)
from cadr.data.sources.schema_inference import Rounding, Survey, check_no_row_numbers
from cadr.embedding.items import Vectors
from cadr.utils.text import listed

ROWS = 4096  # turned into numbers together
_ROW_NUMBERS = ("", "Unnamed: 0", "__index_level_0__")  # to CSV; to CSV, read and written again; to Parquet


class Part(NamedTuple):
    """Some rows of a table to train on."""

    labels: list[str]  # blank where missing
    called: list[str]  # what the rows are called, if anything
    cells: list[Cells]  # of each column that is a feature
    where: Where
    weights: Cells | None = None  # of the column that says for how many rows each one counts


class Places(NamedTuple):
    """Where in a table to train on the labels, the features, and the column that says what the rows are called, are.

    Every column but the label and those ignored is a feature; the first ignored one says what the rows are called.
    """

    label: int
    features: list[int]
    called: list[int]
    weight: int | None


def places(path: Path, header: list[str], options: Options) -> Places:
    _check_twice(path, header, TableError)
    label = column(path, header, options.label_column, LABEL_HINT)
    if options.text_column is not None:
        column(path, header, options.text_column, "; --text-column names the one with the texts")
    weight = None
    if options.weight_column is not None:
        weight = column(path, header, options.weight_column, "; --weight-column names the one with the weights")
        if weight == label:
            raise TableError(f"{path}: column {options.weight_column!r} cannot hold both the labels and the weights")
    out = {label, *([] if weight is None else [weight])}
    out |= {column(path, header, name) for name in options.ignore_columns}
    for name in (header[i] for i in range(len(header)) if i not in out):
        if name in _ROW_NUMBERS:
            raise TableError(
                f"{path}: column {name!r} looks like row numbers, as pandas and R write them; nothing can be learned "
                f"from them: leave the column out with --ignore-columns {shlex.quote(name)}, or give it a name"
            )
    features = [i for i in range(len(header)) if i not in out]
    return Places(label, features, [header.index(name) for name in options.ignore_columns[:1]], weight)


def table_pool(path: Path, header: list[str], parts: Callable[[], Iterator[Part]], options: Options) -> Pool:
    """A pool of the features called `header`; `parts` reads the table from its start."""
    columns = [Column(name) for name in header]
    rounding = Rounding(len(header))
    embedded: Embedded | None = None
    try:
        matrix, texts, called = _read(columns, parts(), rounding)
        plain = not rounding.merges.any() and options.text_column is None
    except TableError:
        plain = False
    if not plain:  # words, dates, gaps, offsets or texts: what such columns hold is known when all of it has been seen
        columns = _survey(path, header, parts(), options)
        vectors, columns = _embedded(columns, parts(), options)
        matrix, texts, called = _read(columns, parts(), vectors=vectors)
        embedded = embedded_in(columns, matrix, vectors)
    if not texts or not columns:
        raise TableError(f"{path}: expected rows of features, found {len(texts)} rows and {len(columns)} features")
    features = tuple(feature for column in columns for feature in column.features)
    check_no_row_numbers(path, columns, matrix)
    names = class_order(str(path), texts)
    return Pool(
        matrix,
        index_labels(str(path), texts, names),
        names,
        path.stem,
        feature_names=features,
        columns=None if columns == [Column(name) for name in header] else tuple(columns),
        identifiers=tuple(called) or None,
        embedded=embedded,
        weights=None if options.weight_column is None else _weights(options.weight_column, parts()),
    )


def _weights(name: str, parts: Iterator[Part]) -> NDArray[np.float64]:
    """For how many rows each one counts."""
    found = []
    for part in parts:
        assert part.weights is not None
        weights = np.asarray(values(Column(name), part.weights, part.where), dtype=np.float64)
        wrong = np.flatnonzero(~(weights > 0))
        if len(wrong):
            raise TableError(
                f"{part.where(int(wrong[0]))}: column {name!r} is {weights[wrong[0]]:g}; a weight must be above 0: "
                "leave out rows that do not count"
            )
        found.append(weights)
    return np.concatenate(found)


def _read(
    columns: list[Column],
    parts: Iterator[Part],
    rounding: Rounding | None = None,
    vectors: Mapping[str, Embedding] = MappingProxyType({}),
) -> tuple[NDArray[np.float32], list[str], list[str]]:
    """Features, labels, and what the rows are called."""
    texts: list[str] = []
    called: list[str] = []
    blocks = [np.empty((0, sum(len(column.features) for column in columns)), dtype=np.float32)]
    for part in parts:
        rows = slice(len(texts), len(texts) + len(part.labels))
        texts += part.labels
        called += part.called
        found = [
            values(column, cells, part.where) if column.texts is None else vectors[column.name].vectors[rows]
            for column, cells in zip(columns, part.cells, strict=True)
        ]
        if rounding is not None and found:
            rounding.add(np.stack(found, axis=1))
        blocks.append(encode(columns, found, len(part.labels)))
    return np.concatenate(blocks), texts, called


def _survey(path: Path, header: list[str], parts: Iterator[Part], options: Options) -> list[Column]:
    surveys = [Survey(name) for name in header]
    for part in parts:
        for survey, cells in zip(surveys, part.cells, strict=True):
            survey.add(cells, part.where)
    embeds = options.features is not None
    return [survey.column(path, embeds, is_text=survey.name == options.text_column) for survey in surveys]


class Embedding(NamedTuple):
    """Of a column of texts."""

    vectors: Vectors
    how: Embedded


def _embedded(
    columns: list[Column], parts: Iterator[Part], options: Options
) -> tuple[dict[str, Embedding], list[Column]]:
    """Vectors of the columns that are texts, and the columns with how long these are."""
    texts: dict[str, list[str]] = {column.name: [] for column in columns if column.texts is not None}
    if not texts:
        return {}, columns
    assert options.features is not None
    for part in parts:
        for of, cells in zip(columns, part.cells, strict=True):
            if of.texts is not None:
                texts[of.name] += cells_as_texts(cells)
    found = {}
    for name, whole in texts.items():
        (vectors,), how = embed_pool(options.features, Texts(tuple(whole)))
        found[name] = Embedding(vectors, how)
    return found, [replace(c, texts=found[c.name].vectors.shape[1]) if c.name in found else c for c in columns]


def embedded_in(
    columns: Sequence[Column], matrix: NDArray[np.float32], vectors: Mapping[str, Embedding]
) -> Embedded | None:
    """How it was done, by the texts, and by the other columns as they are; None of a table without texts."""
    if not vectors:
        return None
    others = np.concatenate([[column.texts is None] * len(column.features) for column in columns]).astype(bool)
    contents = [contents_hash(matrix[:, others]), *(each.how.contents for each in vectors.values())]
    first = next(iter(vectors.values())).how
    return replace(first, contents=sha256(" ".join(contents).encode()).hexdigest(), in_columns=True)


class Layout(NamedTuple):
    """Where in a table the features, the label if any, and columns to keep are."""

    columns: tuple[Column, ...]
    feature_at: list[int]
    label_at: int | None
    kept: list[int]

    def block(self, cells: list[Cells], where: Where, labels: list[str], kept: list[Any], wanted: Wanted) -> Block:
        found = [
            values(column, these, where) if column.texts is None else wanted.embed(Texts(tuple(cells_as_texts(these))))
            for column, these in zip(self.columns, cells, strict=True)
        ]
        unseen = {
            column.name: UnknownCategories.among(texts, positions)
            for column, texts, positions in zip(self.columns, cells, found, strict=True)
            if column.words is not None and (positions == UNSEEN).any()
        }
        names = None if self.label_at is None else names_of_texts(labels, wanted.class_names)
        return Block(encode(self.columns, found, len(found[0])), names, kept, unseen)


def layout_of(path: Path, header: list[str], wanted: Wanted) -> Layout:
    _check_twice(path, header, PredictionDataError)
    label_at = header.index(wanted.label_column) if wanted.label_column in header else None
    if wanted.columns is None:  # trained on an array: the columns have no names there, only a number
        features = [i for i in range(len(header)) if i != label_at]
        if len(features) != wanted.shape[0]:
            raise PredictionDataError(
                f"{path}: the model was trained on {wanted.shape[0]} features, this table has {len(features)} columns"
            )
        return Layout(tuple(Column(header[i]) for i in features), features, label_at, [])
    missing = [column.name for column in wanted.columns if column.name not in header]
    if missing:
        raise PredictionDataError(
            f"{path} lacks {len(missing)} of the {len(wanted.columns)} columns that the model was trained on: "
            + listed(missing)
        )
    features = [header.index(column.name) for column in wanted.columns]
    known = {*features, label_at}
    return Layout(wanted.columns, features, label_at, [i for i in range(len(header)) if i not in known])


def cells_of(path: Path, header: list[str], batch: Any, layout: Layout) -> list[Cells]:
    """The cells of each feature in some rows that Arrow has read."""
    found = []
    for i, of in zip(layout.feature_at, layout.columns, strict=True):
        cells = arrow_cells(batch.column(i), words=of.words is not None or of.texts is not None)
        if cells is None:
            kind = batch.column(i).type
            raise PredictionDataError(
                f"{path}: column {header[i]!r} is {kind}; features must be numbers, dates or categories"
            )
        found.append(cells)
    return found


def _check_twice(path: Path, header: list[str], error: type[TableError] | type[PredictionDataError]) -> None:
    if len(set(header)) != len(header):
        raise error(f"{path}: column {next(n for n in header if header.count(n) > 1)!r} is there twice")
