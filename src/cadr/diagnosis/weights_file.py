"""Weights as files: a row for every row of the data, and a row for every class."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cadr.diagnosis.weights import RowWeights
from cadr.errors import ConfigError
from cadr.utils.files import atomic_write

CLASSES = ".classes.csv"  # what the name of the classes' file ends in


def classes_file(path: Path) -> Path:
    return path.with_name(path.stem + CLASSES)


def write_weights(path: Path, weights: RowWeights) -> list[Path]:
    """Write both files; returns them. What nothing can be said of is blank."""
    if path.suffix.lower() != ".csv":
        raise ConfigError(f"{path}: weights are written to a file that ends in .csv")
    pool, drawn = weights.pool, weights.replicates
    names = pool.identifiers
    called = ["row"] if names is None else ["row", "file" if pool.kind == "image" else "id"]
    numbered = [f"replicate_{b + 1}" for b in range(len(drawn.rows))]
    header = [*called, "label", "propensity", "given_x", "weight", "stabilised", "trimmed", *numbered]
    labels = np.where(weights.labelled, pool.labels, -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        inverse = np.where(weights.labelled, 1.0 / drawn.propensity[:, pool.labels], 1.0)
        columns = (weights.propensity, weights.given_x, weights.weight, weights.stabilised, weights.trimmed)
        numbers = np.column_stack([*columns, *(drawn.rows * inverse)])

    def rows() -> Iterable[list[str]]:
        for row, (label, cells) in enumerate(zip(labels, numbers, strict=True)):
            key = [str(row)] if names is None else [str(row), names[row]]
            yield [*key, pool.class_names[label] if label >= 0 else "", *map(_written, cells)]

    _write(path, header, rows())
    beside = classes_file(path)
    counts = np.bincount(labels[labels >= 0], minlength=pool.num_classes)
    by_class = zip(pool.class_names, counts.tolist(), weights.class_propensity, drawn.propensity.T, strict=True)
    lines = ([name, str(count), *map(_written, (own, *draws))] for name, count, own, draws in by_class)
    _write(beside, ["class", "labels", "propensity", *numbered], lines)
    return [path, beside]


def words(weights: RowWeights) -> list[str]:
    """How much the weights leave of the labels, and of which rows nothing can be said."""
    labels = int(weights.labelled.sum())
    effective = [RowWeights.effective(w) for w in (weights.weight, weights.trimmed)]
    trimmed = int((weights.stabilised > weights.trim).sum())
    said = [f"The {labels:,} labels, weighted, are worth {effective[0]:,.0f} equally weighted ones."]
    if trimmed:
        said.append(
            f"With {trimmed:,} weights cut at {weights.trim:g} times the mean they are worth {effective[1]:,.0f}."
        )
    unknown = [
        name
        for name, phi, count in zip(
            weights.pool.class_names, weights.class_propensity, weights.pool.counts, strict=True
        )
        if np.isnan(phi) and count
    ]
    if unknown:
        said.append(f"With one label a class has no propensity, and its row no weight: {', '.join(unknown)}.")
    return said


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with atomic_write(path) as new, new.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _written(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.8g}"
