"""Labels as people write them, turned into class indices, or of data to predict on into names.

Such data may name classes in another order, or classes the model lacks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import MISSING, chunks
from cadr.errors import DataError
from cadr.utils.text import listed

NO_LABEL = {"", str(MISSING), f"{MISSING:.1f}"}  # as text; the last is what pandas makes of whole numbers with gaps
MANY = 1 << 20  # more classes than anybody has
# What R, pandas, spreadsheets and databases write for a missing value, and people in its place. Not `unknown`, which
# is a class in many data sets, nor `none`, for example of some defects; only Python writes `None`.
_NOT_AVAILABLE = {"na", "n/a", "#na", "#n/a", "nan", "null", "<na>", "?", "-", "unlabelled", "unlabeled"}
_WHOLE_FLOAT = re.compile(r"(0|-?[1-9][0-9]*)\.0+")


class LabelError(DataError):
    """Labels cannot be understood."""


def encode_labels(
    name: str, parts: list[NDArray[Any] | None], class_names: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], list[NDArray[np.int64] | None]]:
    """Class names, and labels as indices into them. Whole numbers are indices already; strings are put in order."""
    for part in parts:
        if part is not None and (part.ndim != 1 or part.dtype.kind not in "iufU"):
            raise LabelError(
                f"{name}: labels should be one whole number (−1 for missing) or string per row, "
                f"got {part.dtype} of shape {part.shape}"
            )
    parts = [whole_numbers(name, p) if p is not None and p.dtype.kind == "f" else p for p in parts]
    given = [p for p in parts if p is not None]
    kinds = {part.dtype.kind == "U" for part in given}
    if kinds == {True}:
        texts = [None if p is None else [str(v) for v in p.tolist()] for p in parts]
        names = class_names or class_order(name, (label for text in texts if text for label in text))
        return names, [None if text is None else index_labels(name, text, names) for text in texts]
    if len(kinds) > 1:
        raise LabelError(f"{name}: training and test labels should both be whole numbers or both strings")
    highest = max((int(chunk.max()) for part in given for chunk in chunks(part)), default=MISSING)
    if class_names is None and highest >= MANY:
        raise LabelError(f"{name}: a label of {highest} would mean more than a million classes; labels count from 0")
    if class_names is None and (unused := _first_unused(given, highest)) is not None:
        raise LabelError(
            f"{name}: no label is {unused}, though one is {highest}; "
            "number the classes from 0 without gaps, use strings, or give class_names"
        )
    encoded = [None if p is None else p if p.dtype == np.int64 else p.astype(np.int64) for p in parts]
    return class_names or tuple(str(c) for c in range(highest + 1)), encoded


def whole_numbers(name: str, labels: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Labels that became floating point because some are missing, which is NaN there."""
    missing = np.isnan(labels)
    bad = np.flatnonzero(~missing & ((labels != np.floor(labels)) | (np.abs(labels) >= MANY)))
    if len(bad):
        raise LabelError(
            f"{name}: labels should be whole numbers (−1 or NaN for missing) or strings, "
            f"but labels[{bad[0]}] is {labels[bad[0]]}"
        )
    return np.where(missing, MISSING, labels).astype(np.int64)


def class_order(source: str, labels: Iterable[str]) -> tuple[str, ...]:
    """The classes among labels as text: numbers by size if all are whole numbers, else by alphabet."""
    spelt = {label_spelling(label) for label in set(labels)}
    names = spelt - NO_LABEL
    if str(MISSING) in spelt and ("" in spelt or names == {"1"} or any(map(_is_negative, names))):
        raise LabelError(
            f"{source}: the label −1 may be a class or mean that the label is missing, for beside it there are "
            f"{'rows without any label' if '' in spelt else 'the labels ' + listed(sorted(names))}; "
            "rename the class, or leave the missing labels blank"
        )
    opposites = {"-"} if "+" in names else set()
    for name in sorted(names - opposites):
        if name == str(None) or name.lower() in _NOT_AVAILABLE:
            raise LabelError(
                f"{source}: the label {name!r} looks like a missing one; leave it blank, or rename the class"
            )
    check_unlike(source, names)
    if all(_is_whole(name) for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def check_unlike(source: str, names: Iterable[str]) -> None:
    """Refuse classes that differ in capitals or space alone; but letters may be classes, and then a is not A."""
    seen: dict[str, str] = {}
    for name in sorted(names):
        key = " ".join(label_spelling(name).casefold().split())
        other = seen.setdefault(key, name)
        if other != name and len(name) > 1:
            raise LabelError(
                f"{source}: the classes {other!r} and {name!r} read alike; write them alike, or rename one"
            )


def index_labels(name: str, labels: list[str], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Indices of labels as text; blank is missing, and so is −1 unless a class is called that."""
    index = dict.fromkeys(NO_LABEL, MISSING) | {label_spelling(n): i for i, n in enumerate(names)}
    index |= {n: i for i, n in enumerate(names)}  # a folder is called what it is called
    try:
        found = {label: index[label if label in index else label_spelling(label)] for label in set(labels)}
    except KeyError as error:
        raise LabelError(f"{name}: label {error} is not among the class names {listed(names)}") from None
    return np.array([found[label] for label in labels], dtype=np.int64)


def label_spelling(text: str) -> str:
    """One spelling for labels that read alike: accents composed, no space around, and 1 where pandas writes 1.0."""
    plain = unicodedata.normalize("NFC", text.strip())
    whole = _WHOLE_FLOAT.fullmatch(plain)
    return plain if whole is None else whole[1]


def label_text(value: Any) -> str:
    """Labels with gaps are often kept as floating point, where the gaps are NaN."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _first_unused(parts: list[NDArray[Any]], highest: int) -> int | None:
    """The first of the numbers 0 … highest that no label is."""
    used = np.zeros(highest + 1, dtype=bool)
    for chunk in (chunk for part in parts for chunk in chunks(part)):
        used[chunk[chunk >= 0]] = True
    return None if used.all() else int(used.argmin())


def _is_negative(text: str) -> bool:
    return text.startswith("-") and _is_whole(text)


def _is_whole(text: str) -> bool:
    """Not one of hundreds of digits, which Python refuses to read: that is a name like any other."""
    return len(text) < 20 and text.removeprefix("-").isdecimal()


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
