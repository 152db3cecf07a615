"""A pool in words and bars, for people, with warnings about columns that should not be learned from."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.sources.columns import Column, in_words, like_a_date

if TYPE_CHECKING:
    from cadr.data.pool import Pool


WIDTH = 20  # characters of the longest bar: the table of CIFAR-10 then fits a terminal of 80


def describe(pool: Pool) -> str:
    """One line about the whole and one per class: how many labels, how many rows of the stream where it is known."""
    return "\n".join([*heading(pool), "", *_table(*class_table(pool))])


def heading(pool: Pool) -> list[str]:
    """One line about the whole, and what was made of columns that are not just numbers."""
    return [headline(pool), *columns_in_words(pool)]


def columns_in_words(pool: Pool) -> list[str]:
    """What was made of words, dates and gaps, and which of them should not be learned from."""
    return [*in_words(pool.columns or ()), *column_warnings(pool)]


def column_warnings(pool: Pool) -> list[str]:
    """Columns that should not be learned from, or not as they are."""
    columns = pool.columns or tuple(Column(name) for name in pool.feature_names or ())
    return [*telling_in_words(columns, pool.examples, pool.labels >= 0), *unread_dates(columns)]


def headline(pool: Pool) -> str:
    n, shape = len(pool.labels), pool.examples.shape[1:]
    what = f"images of {shape[0]}×{shape[1]} pixels" if pool.kind == "image" else f"rows of {shape[0]} features"
    what += "" if pool.columns is None else f" from {len(pool.columns)} columns"
    if pool.embedded is not None and not pool.embedded.in_columns:
        what = f"{pool.embedded.raw.modality} by {shape[0]} features of a pretrained model"
    own = pool.stream is None and pool.hidden_labels is None  # nobody has heard of a stream that no protocol decided on
    parts = [
        f"{pool.name}: {n:,} {what}, {pool.num_classes} classes",
        f"{pool.num_labelled:,} labelled ({100 * pool.num_labelled / n:.3g} %)",
        f"{pool.num_unlabelled:,} unlabelled" if own else f"{pool.num_streamed:,} in the unlabelled stream",
    ]
    if pool.test_labels is not None:
        parts.append(f"{len(pool.test_labels):,} for testing")
    return "; ".join(parts)


def class_table(pool: Pool) -> tuple[list[str], list[list[str]]]:
    """Header and rows: index, name, labelled and its bar; with a known truth also the stream and the labelled share."""
    header = ["class", "name", "labelled", ""]
    counts = pool.counts
    rows = [
        [str(c), name, f"{count:,}", bar(count / max(1, counts.max()))]
        for c, (name, count) in enumerate(zip(pool.class_names, counts, strict=True))
    ]
    truth = pool.hidden_labels
    if truth is not None:
        streamed = truth if pool.stream is None else truth[pool.stream]
        in_stream = np.bincount(streamed[streamed >= 0], minlength=pool.num_classes)
        header[3:] = ["in stream", "labelled share", ""]
        of_class = np.bincount(truth[truth >= 0], minlength=pool.num_classes)
        for row, count, streaming, size in zip(rows, counts, in_stream, of_class, strict=True):
            row[3:] = [f"{streaming:,}", f"{100 * count / max(1, size):.2f} %", row[3]]
    return header, rows


def bar(share: float) -> str:
    """A bar as long as its share of WIDTH, in eighths of a character; anything above nothing can be seen."""
    eighths = round(share * WIDTH * 8)
    if share > 0:
        eighths = max(1, eighths)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    left = {1, len(header) - 1}  # names and bars
    return [
        "  ".join(
            cell.ljust(w) if k in left else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]


FEW = 10  # rows with a label, or without, in which words may differ by chance


def telling_in_words(columns: Sequence[Column], examples: NDArray[Any], labelled: NDArray[np.bool_]) -> list[str]:
    """A warning if words or gaps of rows with a label are never those of other rows, or these have a single number.

    Such a number, which the others never have, stands where nobody has entered one: −1, 0 or 9999.
    """
    if min(labelled.sum(), (~labelled).sum()) < FEW:
        return []
    found = []
    at = 0
    for column in columns:
        cells = examples[:, at : at + len(column.features)]
        at += len(column.features)
        if column.texts is not None:
            continue
        numbers = column.words is None
        marks = cells[:, 1:] if numbers else cells  # of numbers: whether they are missing, if any are
        apart = marks.shape[1] and not (_kinds(marks[labelled]) & _kinds(marks[~labelled])).any()
        if apart or (numbers and _one_and_others(cells[labelled, 0], cells[~labelled, 0])):
            found.append(column.name)
    if not found:
        return []
    leave_out = f"--ignore-columns {' '.join(map(shlex.quote, found))}"
    return [
        f"Warning: {', '.join(map(repr, found))} leaks which rows are labelled: its values in labelled rows occur in "
        f"no unlabelled row; leave it out with {leave_out}."
    ]


def _one_and_others(some: NDArray[Any], others: NDArray[Any]) -> bool:
    """Whether one side has a single number, which the other never has."""
    return any((a == a[0]).all() and not (b == a[0]).any() for a, b in ((some, others), (others, some)))


def _kinds(marks: NDArray[Any]) -> NDArray[np.bool_]:
    """Which marks some row has, and at last whether some row has none."""
    return np.append(marks.any(0), ~marks.any(1).all())


def unread_dates(columns: Sequence[Column]) -> list[str]:
    """A warning if most words of a column look like dates: as words, every day is as unlike the next as any other."""
    found = [c.name for c in columns if c.words and 2 * sum(map(like_a_date, c.words)) >= len(c.words)]
    if not found:
        return []
    return [
        f"Warning: {', '.join(map(repr, found))} seems to hold dates, but their format is ambiguous, so they are read "
        "as words; write them as 2025-03-04."
    ]
