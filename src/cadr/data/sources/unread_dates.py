"""Dates that are not written as ISO 8601 has them, few enough to pass for words."""

from __future__ import annotations

from collections.abc import Sequence

from cadr.data.sources.columns import Column
from cadr.data.sources.dates import like_a_date


def unread_dates(columns: Sequence[Column]) -> list[str]:
    """A warning if most words of a column look like dates: as words, every day is as unlike the next as any other."""
    found = [c.name for c in columns if c.words and 2 * sum(map(like_a_date, c.words)) >= len(c.words)]
    if not found:
        return []
    return [
        f"Warning: {', '.join(map(repr, found))} holds what look like dates, but they are read as words, because which "
        "day they mean is not certain; written as 2025-03-04 they are understood."
    ]
