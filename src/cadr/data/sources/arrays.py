"""Arrays, and what people hold in memory like them: lists, and pandas' tables and columns.

Nothing is copied that already has the form of examples: uint8 (n, h, w, 3), or float32 (n, d).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cadr.data.pool import CHUNK, Pool, chunks
from cadr.data.raw import Embedded, Pictures, Texts, embed, embed_pool
from cadr.data.sources.base import Block, Blocks, Options, PredictionDataError, Wanted, in_words
from cadr.data.sources.columns import Column, encode
from cadr.data.sources.images import resize_all
from cadr.data.sources.labels import Names, encode_labels, label_text, names_of_numbers, names_of_texts, whole_numbers
from cadr.data.sources.parsing import Cells, TableError, cells_as_texts, rows_from, values
from cadr.data.sources.schema_inference import Rounding, Survey
from cadr.data.sources.table import Embedding, Part, embedded_in, places, table_pool
from cadr.errors import DataError
from cadr.utils.text import reason

if TYPE_CHECKING:
    from cadr.embedding.registry import Pretrained

ROWS = 8192  # to predict on together, at most


class ArrayError(DataError):
    """An array file is damaged, or holds something other than numbers."""


def from_arrays(
    examples: ArrayLike,
    labels: ArrayLike,
    *,
    name: str = "arrays",
    test_examples: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Pool:
    """A pool from uint8 images (grey, RGB or RGBA) or numbers, as arrays, lists or pandas' tables and columns.

    Columns of a DataFrame may hold words, dates and gaps: they are encoded as those of a table in a file.
    Labels are whole numbers or strings. One is missing where it is −1, NaN or None, or the empty string.
    """
    given = [None if part is None else labels_array(name, part) for part in (labels, test_labels)]
    names, (train, test) = encode_labels(name, given, class_names)
    assert train is not None
    columns = columns_of(name, examples) if is_frame(examples) else None
    if columns is not None:
        return Pool(
            examples=frame_features(name, examples, columns),
            labels=train,
            class_names=names,
            name=name,
            test_examples=None if test_examples is None else frame_features(name, test_examples, columns),
            test_labels=test,
            feature_names=tuple(feature for column in columns for feature in column.features),
            columns=columns,
        )
    array = examples_array(name, examples)
    check_apart(name, array)
    return Pool(
        examples=as_examples(name, array),
        labels=train,
        class_names=names,
        name=name,
        test_examples=None if test_examples is None else as_examples(name, examples_array(name, test_examples)),
        test_labels=test,
    )


def as_examples(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """uint8 (n, h, w, 3) or float32 (n, d); nothing is copied that already has that form."""
    if array.dtype == np.uint8 and array.ndim in (3, 4):
        if array.ndim == 3:
            array = array[..., None]
        if array.shape[-1] == 1:
            return np.repeat(array, 3, axis=-1)
        if array.shape[-1] == 3:
            return array
        if array.shape[-1] == 4:
            return _on_white(array)
    elif array.ndim == 2 and array.dtype.kind in "fiub":
        return array if array.dtype == np.float32 else _to_float32(name, array)
    raise ArrayError(
        f"{name}: expected uint8 images (n, height, width[, channels]) or numeric features (n, d), "
        f"got {array.dtype} of shape {array.shape}"
    )


def check_apart(name: str, array: NDArray[Any]) -> None:
    """Refuse features to train on that 32 bits would merge: of a row alone to predict on, nobody can tell."""
    seen = merging(array)
    if seen is not None:
        at = int(seen.merges.argmax())
        raise ArrayError(
            f"{name}: column {at} holds numbers from {seen.low[at]:.15g} to {seen.high[at]:.15g}, too close together, "
            "so far from 0, to be told apart in 32 bits; subtract an offset, such as their mean"
        )


def merging(array: NDArray[Any]) -> Rounding | None:
    """What 32 bits would merge, if anything."""
    if array.ndim != 2 or array.dtype.kind not in "fiu" or np.can_cast(array.dtype, np.float32):
        return None
    seen = Rounding(array.shape[1])
    for chunk in chunks(array):
        seen.add(chunk)
    return seen if seen.merges.any() else None


def array_blocks(
    name: str, array: NDArray[Any], labels: Names | None, wanted: Wanted, called: list[str] | None = None
) -> Blocks:
    """Rows of an array to predict on, numbered unless they are called something."""
    if array.ndim not in (2, 3, 4) or len(array) == 0:
        raise PredictionDataError(f"{name}: expected rows of {in_words(wanted.shape)}, got shape {array.shape}")

    together = min(ROWS, max(1, CHUNK // max(1, array[:1].nbytes)))
    parts = -(-len(array) // together)

    def read(first: int, last: int | None) -> Iterator[Block]:
        start = first * together
        each = (array[i * together : (i + 1) * together] for i in range(parts)[first:last])
        for part in (chunk for rows in each for chunk in chunks(rows)):  # one each, which are let go again
            examples = as_examples(name, part)
            if examples.ndim == 4 and wanted.raw == "pictures":
                examples = wanted.embed(Pictures(examples))
            elif examples.ndim == 4:
                examples = resize_all(examples, wanted.image_size)
            wanted.check(name, examples)
            _check_finite(name, examples, start)
            stop = start + len(part)
            kept = [*range(start, stop)] if called is None else called[start:stop]
            yield Block(examples, None if labels is None else labels[start:stop], [kept])
            start = stop

    columns = ["row" if called is None else "id"]
    return Blocks(columns, labels is not None, read, parts, {}, numbered=called is None)


def label_names(path: Path, labels: NDArray[Any], array: NDArray[Any], names: tuple[str, ...], wanted: Wanted) -> Names:
    """What an array of labels calls the rows of `array`; `names` are what its numbers stand for."""
    if labels.shape != array.shape[:1]:
        raise PredictionDataError(f"{path}: expected a label for every row, got shape {labels.shape} for {array.shape}")
    if labels.dtype.kind == "U":
        return names_of_texts(labels.tolist(), wanted.class_names)
    if labels.dtype.kind == "f":
        labels = whole_numbers(str(path), labels)
    if labels.dtype.kind not in "iu":
        raise PredictionDataError(f"{path}: labels should be whole numbers or strings, got {labels.dtype}")
    return names_of_numbers(labels, names, wanted.class_names)


def examples_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """An array, which is not copied if it is one already."""
    return _as_numbers(_as_array(name, values))


def labels_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Labels with gaps are often objects: here text, or else floating point with NaN for None."""
    array = _as_array(name, values, object if isinstance(values, list | tuple) else None)  # or None becomes a word
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    known = [None if _is_missing(value) else value for value in array.tolist()]
    if any(isinstance(value, str) for value in known):
        return np.array([label_text(value) for value in known], dtype=str)
    return _as_numbers(np.array(known, dtype=object))


def _as_array(name: str, values: ArrayLike, kind: type | None = None) -> NDArray[Any]:
    try:
        return np.asarray(values, dtype=kind)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: expected an array, or what can become one, but {reason(error)}") from None


def _as_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers of several types become objects in one array; whoever takes it says what else they may be."""
    try:
        return array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError):
        return array


def _is_missing(value: Any) -> bool:
    """None, NaN, and the NA of pandas, which compares to nothing."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _check_finite(name: str, examples: NDArray[Any], start: int) -> None:
    if examples.dtype == np.float32 and not np.isfinite(examples).all():
        row, column = np.argwhere(~np.isfinite(examples))[0]
        raise PredictionDataError(
            f"{name}: row {start + row}, column {column} is {examples[row, column]}, not a finite number of 32 bits"
        )


def _on_white(array: NDArray[Any]) -> NDArray[Any]:
    """The colours that image files with such transparency are read as, too; what is opaque is not copied."""
    if all((part[..., 3] == 255).all() for part in chunks(array)):
        return array[..., :3]
    shown = np.empty((*array.shape[:-1], 3), np.uint8)
    start = 0
    for part in chunks(array):
        opaque = part[..., 3:].astype(np.uint16)
        shown[start : start + len(part)] = (part[..., :3] * opaque + 255 * (255 - opaque) + 127) // 255
        start += len(part)
    return shown


def _to_float32(name: str, array: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        result = array.astype(np.float32)
    if array.dtype.kind == "f":
        lost = np.argwhere(np.isfinite(array) & ~np.isfinite(result))
        if len(lost):
            raise ArrayError(
                f"{name}: {array[tuple(lost[0])]} at row {lost[0][0]} is too large for float32; rescale it"
            )
    return result


_PLAIN = (str, bool, int, float, Decimal, date, np.bool_, np.integer, np.floating)


def is_frame(examples: Any) -> bool:
    return all(hasattr(examples, name) for name in ("columns", "dtypes", "iloc"))


def open_frame(frame: Any, options: Options) -> Pool:
    """A pool from a table with a column of labels, as from a file of the name DataFrame."""
    path, header = Path("DataFrame"), [str(title) for title in frame.columns]
    at = places(path, header, options)
    labels, *called = (_texts(frame.iloc[:, i]) for i in (at.label, *at.called))
    cells = [_cells(str(path), header[i], frame.iloc[:, i]) for i in at.features]
    weights = None if at.weight is None else _cells(str(path), header[at.weight], frame.iloc[:, at.weight])

    def parts() -> Iterator[Part]:
        yield Part(labels, called[0] if called else [], cells, rows_from(path, 0), weights)

    return table_pool(path, [header[i] for i in at.features], parts, options)


def columns_of(
    name: str, frame: Any, features: Pretrained | None = None, text_column: str | None = None
) -> tuple[Column, ...] | None:
    """What the columns hold; None if all are numbers without gaps, which need no encoding.

    Columns of texts are learned from through the pretrained model of `features`; `text_column` is one of them.
    """
    cells = [_cells(name, title, frame.iloc[:, i]) for i, title in enumerate(frame.columns)]
    if not any(isinstance(c, list) or c.dtype.kind == "M" or np.isnan(c).any() for c in cells):
        return None
    found = []
    for title, column in zip(frame.columns, cells, strict=True):
        survey = Survey(str(title), f"drop(columns={title!r})")
        survey.add(column, lambda row: f"{name}, row {row}")
        of = survey.column(name, embeds=features is not None, is_text=survey.name == text_column)
        if of.texts is not None and features is not None:
            of = replace(of, texts=embed(features, Texts(("",))).shape[1])
        found.append(of)
    return tuple(found)


def frame_features(
    name: str, frame: Any, columns: Sequence[Column], features: Pretrained | None = None
) -> NDArray[np.float32]:
    """float32 (rows, features); the columns are those that were learned, in any order, among others or not."""
    return frame_embedded(name, frame, columns, features)[0]


def frame_embedded(
    name: str, frame: Any, columns: Sequence[Column], features: Pretrained | None = None
) -> tuple[NDArray[np.float32], Embedded | None]:
    """The same, and how texts among the columns became vectors, if there are any."""
    titles = [str(title) for title in frame.columns]
    found: list[NDArray[Any]] = []
    vectors: dict[str, Embedding] = {}
    for column in columns:
        if titles.count(column.name) != 1:
            problem = "no column" if column.name not in titles else "more than one column"
            raise TableError(f"{name}: there is {problem} {column.name!r}, which the model was trained with")
        cells = _cells(name, column.name, frame.iloc[:, titles.index(column.name)])
        if column.texts is not None and features is not None:
            (embedded,), how = embed_pool(features, Texts(tuple(cells_as_texts(cells))))
            vectors[column.name] = Embedding(embedded, how)
            found.append(embedded)
        else:
            found.append(values(column, cells, lambda row: f"{name}, row {row}"))
    matrix = encode(columns, found, len(frame))
    return matrix, embedded_in(columns, matrix, vectors)


def _cells(name: str, title: Any, series: Any) -> Cells:
    """Numbers, NaN where missing; dates in UTC; or text, blank where missing."""
    if str(series.dtype) == "category":
        series = series.astype(object)
    if series.dtype.kind == "M":
        return np.asarray((series if series.dt.tz is None else series.dt.tz_convert(None)).to_numpy())
    if series.dtype.kind in "fiub":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if series.dtype.kind == "O" and all(isinstance(value, _PLAIN) for value in series[series.notna()].tolist()):
        return _texts(series)
    raise TableError(
        f"{name}: column {title!r} is {series.dtype}; features must be numbers, dates or categories: convert it, or "
        f"drop(columns={title!r})"
    )


def _texts(series: Any) -> list[str]:
    filled = series.notna().tolist()
    return [label_text(value) if there else "" for value, there in zip(series.tolist(), filled, strict=True)]
