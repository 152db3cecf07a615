"""A pool in words and bars, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cadr.data.sources.columns import Column, in_words
from cadr.data.sources.label_leakage import telling_in_words
from cadr.data.sources.unread_dates import unread_dates

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
