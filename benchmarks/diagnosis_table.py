"""The tables of the diagnosis records, ours beside the figures of the study that the method comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

CELLS = ((1, False), (5, False), (20, False), (50, False), (20, True))  # γ, and whether the unlabelled tail is reversed
THEIRS: dict[str, Any] = {
    "error": {
        "digits": [(0.40, 1.1), (0.67, 1.9), (1.38, 3.9), (2.71, 9.4), (1.72, 5.7)],
        "fashion_mnist": [(0.80, 2.1), (1.39, 4.0), (2.52, 6.5), (3.90, 10.2), (3.71, 10.6)],
    },
    "parts": [(0.69, 1.01, 1.36), (1.53, 1.59, 3.52), (2.80, 2.93, 7.50), (4.10, 4.48, 10.36), (4.53, 3.87, 8.69)],
    "coverage": {"digits": [0.99, 0.99, 0.93, 0.83, None], "fashion_mnist": [0.99, 0.94, 0.94, 0.85, None]},
    "coverage_by_labels": {"1": "0.33 to 0.50", "2": "0.89"},
    "size": "0.048 (39 of 807)",
    "power": "0.63 to 0.85 with 100 to 120 labels, γ = 3 to 5; 1.00 for γ ≥ 5 with at most 50 labels a class",
    "domain_auc": "at most 0.574 where the class decides, 0.66 to 0.72 where features do",
    "unlabelled_class_found": {1: "0.93", 5: "0.47", 20: "0.00"},
    "cpu_seconds": {"fit": 0.3, "estimate": 0.04, "bootstrap": 0.5, "test": 0.1},
}


def show(record: dict[str, Any]) -> None:
    for part in (_cells, _parts, _coverage, _test, _seconds):
        print("\n".join(part(record)), end="\n\n")


def _cells(record: dict[str, Any]) -> Iterator[str]:
    yield "Mean (largest) absolute error of the shares, and mean width of the 90 % interval, in percentage points"
    yield (
        f"{'data':14}{'γ, unlabelled':15}{'ours':>14}{'±':>6}{'theirs':>14}{'width':>7}{'coverage':>10}{'theirs':>8}"
        f"{'rejected':>10}"
    )
    for cell in record["cells"]:
        where, at = cell["dataset"], CELLS.index((cell["gamma"], cell["unlabelled"] == "reversed"))
        theirs, covered = THEIRS["error"][where][at], THEIRS["coverage"][where][at]
        yield (
            f"{where:14}{cell['gamma']:2}, {cell['unlabelled']:11}{cell['error']:7.2f} ({cell['largest_error']:4.1f})"
            f"{cell['error_standard_error']:6.2f}{theirs[0]:7.2f} ({theirs[1]:4.1f}){cell['width']:7.1f}"
            f"{cell['covered']:10.3f}{covered or '–':>8}{cell['rejected']:10.2f}"
        )


def _parts(record: dict[str, Any]) -> Iterator[str]:
    yield "The same error of the raw and the recalibrated estimate, and of BBSE, on Fashion-MNIST"
    yield f"{'γ, unlabelled':15}{'ours':>22}{'theirs':>22}"
    fashion = [cell for cell in record["cells"] if cell["dataset"] == "fashion_mnist"]
    for cell, theirs in zip(fashion, THEIRS["parts"], strict=False):
        ours = " / ".join(f"{cell[name]:.2f}" for name in ("raw", "recalibrated", "bbse"))
        yield f"{cell['gamma']:2}, {cell['unlabelled']:11}{ours:>22}{' / '.join(f'{v:.2f}' for v in theirs):>22}"


def _coverage(record: dict[str, Any]) -> Iterator[str]:
    yield "Coverage by number of labels of the class (one label: of an interval that is never shown)"
    covered_by: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for cell in record["cells"]:
        for labels, counted in cell["coverage_by_labels"].items():
            covered_by[labels] += counted
    for labels in sorted(covered_by, key=lambda text: (len(text), text)):
        covered, n = covered_by[labels]
        theirs = THEIRS["coverage_by_labels"].get(labels)
        yield f"{labels:>8}: {covered / n:.3f} of {n:.0f}" + (f" (theirs {theirs})" if theirs else "")


def _test(record: dict[str, Any]) -> Iterator[str]:
    yield "How often the test rejects at the 5 % level"
    for row in record["test"]:
        yield f"{row['dataset']:14}{row['labels']:34}{row['rejected'] / row['of']:.3f} of {row['of']}"
    drawn = [row for row in record["test"] if row["gamma"] == 1]
    if drawn:
        wrong, n = sum(row["rejected"] for row in drawn), sum(row["of"] for row in drawn)
        yield f"size over all: {wrong / n:.3f} ({wrong} of {n}); theirs {THEIRS['size']}"
    yield f"power, theirs: {THEIRS['power']}"


def show_checks(record: dict[str, Any]) -> None:
    print(
        "How often the checks warn: more than the class decides; a class that nobody labelled; and how often the test"
    )
    print("test rejects while the first is silent")
    print(f"{'data':18}{'γ':>3}  {'what decides':24}{'AUC (range)':>24}{'more':>6}{'far':>5}{'silent':>8}{'of':>5}")
    for row in record["checks"]:
        auc = f"{row['auc'][0]:.3f} ({row['auc'][1]:.3f} to {row['auc'][2]:.3f})"
        print(
            f"{row['dataset']:18}{row['gamma'] or '':>3}  {row['decides']:24}{auc:>24}{row['warned']:6}{row['far']:5}"
            f"{row['unqualified']:8}{row['of']:5}"
        )
    print(f"AUC, theirs: {THEIRS['domain_auc']}")
    found = ", ".join(f"{share} with γ = {gamma}" for gamma, share in THEIRS["unlabelled_class_found"].items())
    print(f"a class without labels found, theirs: {found}")


def _seconds(record: dict[str, Any]) -> Iterator[str]:
    yield "CPU seconds for 6,000 rows × 64 (Fashion-MNIST, γ = 20), one thread"
    for name, seconds in record["cpu_seconds"].items():
        theirs = THEIRS["cpu_seconds"].get(name)
        yield f"{name:>10}: {seconds:.2f}" + (f" (theirs {theirs})" if theirs else "")
