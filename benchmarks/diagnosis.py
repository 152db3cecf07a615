"""Errors, coverage, size and power of `cadr.diagnose` on real data, beside those of a study.

    python benchmarks/diagnosis.py [--root FOLDER] [--seeds 24] [--out benchmarks/diagnosis.json]

Labels of scikit-learn's digits (1,797 images) and of Fashion-MNIST (6,000 images drawn anew for each seed, found under
--root; Debian's dataset-fashion-mnist puts it under /usr/share/datasets), 64 principal components each, are made to
miss by class: at most 50 of a class are kept, γ times fewer of the rarest. "Theirs" are the figures of the study that
the method comes from. How long a diagnosis takes is measured by diagnosis_speed.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from cadr.data import Pool, open_data
from cadr.data.pool import MISSING
from cadr.data.profile import ceilings
from cadr.estimate.class_shares import class_shares
from cadr.evaluate.diagnosis import diagnose, missing_at_random
from cadr.evaluate.diagnosis_crossfit import CrossFit, cross_fit
from cadr.evaluate.diagnosis_features import fit_features
from cadr.evaluate.diagnosis_result import ALPHA

CELLS = ((1, False), (5, False), (20, False), (50, False), (20, True))  # γ, and whether the unlabelled tail is reversed
N_MAX = 50
PER_CLASS = 600  # images of Fashion-MNIST
THEIRS: dict[str, Any] = {
    "error": {
        "digits": [(0.40, 1.1), (0.67, 1.9), (1.38, 3.9), (2.71, 9.4), (1.72, 5.7)],
        "fashion_mnist": [(0.80, 2.1), (1.39, 4.0), (2.52, 6.5), (3.90, 10.2), (3.71, 10.6)],
    },
    "parts": [(0.69, 1.01, 1.36), (1.53, 1.59, 3.52), (2.80, 2.93, 7.50), (4.10, 4.48, 10.36), (4.53, 3.87, 8.69)],
    "coverage": {"digits": [0.99, 0.99, 0.93, 0.83, None], "fashion_mnist": [0.99, 0.94, 0.94, 0.85, None]},
    "coverage_by_labels": {"1": "0.33 to 0.50", "2": "0.89"},
    "size": "0.048",
    "power": {"γ ≥ 5": "1.00", "100 to 120 labels, γ 3 to 5": "0.63 to 0.85"},
}


def read(name: str, root: str | None) -> Pool:
    """The 64 principal components that `diagnose` would use, made once; of digits the test part too, as theirs."""
    pool = open_data(name, root=root)
    if pool.name == "digits":
        assert pool.test_examples is not None
        assert pool.test_labels is not None
        x, y = np.concatenate([pool.examples, pool.test_examples]), np.concatenate([pool.labels, pool.test_labels])
        pool = Pool(x, y, pool.class_names, name)
    rows = np.arange(len(pool.labels))
    return Pool(fit_features(pool, rows, np.random.default_rng(0))[rows], pool.labels, pool.class_names, name)


def draw(
    pool: Pool, counts: np.ndarray, seed: int, reversed_tail: float = 1.0, hidden: int | None = None
) -> tuple[Pool, np.ndarray]:
    """A pool whose first counts[c] rows of class c, in random order, keep their label, and the truth of the others."""
    random = np.random.default_rng([seed, *counts.tolist(), int(reversed_tail)])
    rows, labels = [], []
    size = PER_CLASS if pool.name == "fashion_mnist" else int(np.bincount(pool.labels).max())
    others = ceilings(size, reversed_tail, pool.num_classes)[::-1]
    for c, n in enumerate(counts):
        mine = random.permutation(np.flatnonzero(pool.labels == c))[:size]
        n = 0 if c == hidden else n
        mine = mine if reversed_tail == 1.0 else mine[: n + others[c]]
        rows.append(mine)
        labels.append(np.where(np.arange(len(mine)) < n, c, MISSING))
    order = random.permutation(sum(map(len, rows)))
    chosen, known = np.concatenate(rows)[order], np.concatenate(labels)[order]
    truth = pool.labels[chosen]
    made = Pool(pool.examples[chosen], known, pool.class_names, pool.name, hidden_labels=truth)
    return made, np.bincount(truth[known == MISSING], minlength=pool.num_classes) / (known == MISSING).sum()


def fit(pool: Pool, random: np.random.Generator) -> tuple[CrossFit, np.ndarray]:
    """The cross-fit alone, and the labels (of the classes that have some)."""
    labelled, unlabelled = np.flatnonzero(pool.labels >= 0), np.flatnonzero(pool.labels < 0)
    y = np.unique(pool.labels[labelled], return_inverse=True)[1]
    features = fit_features(pool, np.arange(len(pool.labels)), random)
    return cross_fit(features, labelled, y, unlabelled, random), y


def parts_and_bbse(pool: Pool, truth: np.ndarray) -> dict[str, float]:
    """Mean absolute errors of the raw and the recalibrated estimate, and of BBSE (Lipton et al., 2018)."""
    fitted, y = fit(pool, np.random.default_rng(0))
    shares = class_shares(fitted.labelled, y, fitted.unlabelled)
    joint = np.zeros((pool.num_classes, pool.num_classes))
    np.add.at(joint, (fitted.labelled.argmax(1), y), 1.0 / len(y))
    predicted = np.bincount(fitted.unlabelled.argmax(1), minlength=pool.num_classes) / len(fitted.unlabelled)
    bbse = np.maximum(np.linalg.lstsq(joint, predicted, rcond=None)[0] * np.bincount(y) / len(y), 0.0)
    estimates = {"raw": shares.raw, "recalibrated": shares.recalibrated, "bbse": bbse / bbse.sum()}
    return {name: float(100 * np.abs(q - truth).mean()) for name, q in estimates.items()}


def rejects(pool: Pool, seed: int) -> bool:
    random = np.random.default_rng(seed)
    return missing_at_random(fit(pool, random)[0], random).p_value < ALPHA


def accuracy_of(pool: Pool, seeds: int) -> list[dict[str, Any]]:
    """A record per cell: errors in percentage points, coverage, what the test and the checks said."""
    records = []
    for gamma, tail in CELLS:
        found: dict[str, list[float]] = defaultdict(list)
        by_labels: dict[str, list[bool]] = defaultdict(list)
        for seed in range(seeds):
            made, truth = draw(pool, ceilings(N_MAX, gamma, 10), seed, 20.0 if tail else 1.0)
            start = time.perf_counter()
            diagnosis = diagnose(made, seed=seed)
            found["seconds"].append(time.perf_counter() - start)
            error = 100 * np.abs(np.array([c.share for c in diagnosis.classes]) - truth)
            found["error"].append(error.mean())
            found["largest_error"].append(error.max())
            found["rejected"].append(not diagnosis.missing_at_random)
            found["domain_alarm"].append(diagnosis.domain_auc > diagnosis.domain_limit)
            found["domain_auc"].append(diagnosis.domain_auc)
            found["far_alarm"].append(diagnosis.far_share > diagnosis.far_limit)
            if pool.name == "fashion_mnist":
                for name, value in parts_and_bbse(made, truth).items():
                    found[name].append(value)
            for c, q in zip(diagnosis.classes, truth, strict=True):
                if c.share_interval is not None:
                    inside = c.share_interval[0] <= q <= c.share_interval[1]
                    found["covered"].append(inside)
                    by_labels[str(c.labels) if c.labels < 5 else "5 to 9" if c.labels < 10 else "10 up"].append(inside)
        mean = {name: np.mean(values, axis=0) for name, values in found.items()}
        records.append(
            {
                "dataset": pool.name,
                "gamma": gamma,
                "unlabelled": "reversed" if tail else "uniform",
                "seeds": seeds,
                "error_standard_error": _rounded(np.std(found["error"], ddof=1) / np.sqrt(seeds)),
                "largest_domain_auc": _rounded(max(found["domain_auc"])),
                **{name: _rounded(value) for name, value in mean.items()},
                "coverage_by_labels": {k: [int(np.sum(v)), len(v)] for k, v in sorted(by_labels.items())},
            }
        )
        print(json.dumps(records[-1]), flush=True)
    return records


def test_of(pool: Pool, seeds: int) -> list[dict[str, Any]]:
    """How often the test rejects: labels drawn at random (its size), and few labels that are a little biased."""
    random_counts = [("random, 100 labels", 100), ("random, 200 labels", 200), ("random, 500 labels", 500)]
    records = []
    for name, n in random_counts:
        rejected = []
        for seed in range(seeds):
            made, _ = draw(pool, np.zeros(10, dtype=np.int64), seed)
            chosen = np.random.default_rng([seed, n]).permutation(len(made.labels))[:n]
            truth = made.hidden_labels
            assert truth is not None
            labels = np.full(len(truth), MISSING)
            labels[chosen] = truth[chosen]
            made = Pool(made.examples, labels, made.class_names, made.name, hidden_labels=truth)
            rejected.append(rejects(made, seed))
        records.append({"dataset": pool.name, "labels": name, "rejected": int(np.sum(rejected)), "of": seeds})
        print(json.dumps(records[-1]), flush=True)
    for gamma, n_max in ((3, 18), (5, 22)):
        counts = ceilings(n_max, gamma, 10)
        rejected = [rejects(draw(pool, counts, seed)[0], seed) for seed in range(seeds)]
        label = f"γ = {gamma}, {counts.sum()} labels"
        records.append({"dataset": pool.name, "labels": label, "rejected": int(np.sum(rejected)), "of": seeds})
        print(json.dumps(records[-1]), flush=True)
    return records


def checks_of(pool: Pool, seeds: int) -> list[dict[str, Any]]:
    """How often the checks speak up when they should: missingness that depends on x, and a class nobody labelled."""
    records = []
    for gamma in (1, 5, 20):
        counts = ceilings(N_MAX, gamma, 10)
        hidden = [diagnose(draw(pool, counts, seed, hidden=seed % 10)[0], seed=seed) for seed in range(seeds)]
        violated = [diagnose(_dependent_on_features(pool, counts, seed), seed=seed) for seed in range(seeds)]
        records.append(
            {
                "dataset": pool.name,
                "gamma": gamma,
                "seeds": seeds,
                "unlabelled_class_found": _rounded(np.mean([d.far_share > d.far_limit for d in hidden])),
                "violation_found": _rounded(np.mean([d.domain_auc > d.domain_limit for d in violated])),
                "violation_auc": _rounded(np.mean([d.domain_auc for d in violated])),
            }
        )
        print(json.dumps(records[-1]), flush=True)
    return records


def _dependent_on_features(pool: Pool, counts: np.ndarray, seed: int) -> Pool:
    """Within a class, a row whose first component is z standard deviations up is labelled e^(1.5 z) times as often."""
    made, _ = draw(pool, np.zeros_like(counts), seed)
    truth = made.hidden_labels
    assert truth is not None
    random = np.random.default_rng([seed, 1])
    first = made.examples[:, 0]
    labels = np.full(len(truth), MISSING)
    for c, n in enumerate(counts):
        rows = np.flatnonzero(truth == c)
        z = (first[rows] - first[rows].mean()) / first[rows].std()
        labels[rows[np.argsort(-(1.5 * z + random.gumbel(size=len(rows))))[:n]]] = c
    return Pool(made.examples, labels, made.class_names, made.name, hidden_labels=truth)


def _rounded(value: Any) -> float:
    return round(float(value), 3)


def show(record: dict[str, Any]) -> None:
    """Ours beside theirs."""
    print("\nMean (largest) absolute error of the shares in percentage points; coverage of the 90 % interval")
    print(f"{'data':14}{'γ, unlabelled':15}{'ours':>14}{'theirs':>14}{'coverage':>10}{'theirs':>8}{'rejected':>10}")
    for cell in record["cells"]:
        where, at = cell["dataset"], CELLS.index((cell["gamma"], cell["unlabelled"] == "reversed"))
        theirs, covered = THEIRS["error"][where][at], THEIRS["coverage"][where][at]
        print(
            f"{where:14}{cell['gamma']:2}, {cell['unlabelled']:11}{cell['error']:7.2f} ({cell['largest_error']:4.1f})"
            f"{theirs[0]:7.2f} ({theirs[1]:4.1f}){cell['covered']:10.3f}{covered or '–':>8}{cell['rejected']:10.2f}"
        )
    print("\nraw / recalibrated / BBSE on Fashion-MNIST: ours, theirs")
    fashion = [cell for cell in record["cells"] if cell["dataset"] == "fashion_mnist"]
    for cell, theirs in zip(fashion, THEIRS["parts"], strict=False):
        ours = " / ".join(f"{cell[name]:.2f}" for name in ("raw", "recalibrated", "bbse"))
        print(f"{cell['gamma']:2}, {cell['unlabelled']:11}{ours:>22}{' / '.join(f'{v:.2f}' for v in theirs):>22}")
    print("\nCoverage by number of labels of the class (a class with one label gets no interval)")
    covered_by: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for cell in record["cells"]:
        for labels, counted in cell["coverage_by_labels"].items():
            covered_by[labels] += counted
    for labels, (covered, n) in sorted(covered_by.items()):
        print(f"{labels:>8}: {covered / n:.3f} of {n:.0f}  {THEIRS['coverage_by_labels'].get(labels, '')}")
    print("\nThe test rejects at the 5 % level (theirs: size " + THEIRS["size"] + f"; power {THEIRS['power']})")
    for row in record["test"]:
        print(f"{row['dataset']:14}{row['labels']:22}{row['rejected'] / row['of']:.3f} of {row['of']}")
    drawn = [row for row in record["test"] if row["labels"].startswith("random")]
    if drawn:
        wrong, n = sum(row["rejected"] for row in drawn), sum(row["of"] for row in drawn)
        print(f"size over all: {wrong / n:.3f} ({wrong} of {n})")
    print("\nChecks: how often each warns when it should, and when it should not")
    for row in record["checks"]:
        same = (c for c in record["cells"] if (c["dataset"], c["gamma"]) == (row["dataset"], row["gamma"]))
        false = next(same, {"domain_alarm": np.nan, "far_alarm": np.nan})
        print(
            f"{row['dataset']:14}γ = {row['gamma']:2}: missing by features {row['violation_found']:.2f} "
            f"(else {false['domain_alarm']:.2f}), unlabelled class {row['unlabelled_class_found']:.2f} "
            f"(else {false['far_alarm']:.2f})"
        )


def _merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the same data and setting are replaced."""

    def setting(row: dict[str, Any]) -> list[Any]:
        return [row.get(name) for name in ("dataset", "gamma", "unlabelled", "labels")]

    kept = [row for row in old if setting(row) not in map(setting, new)]
    return sorted([*kept, *new], key=lambda row: str(row["dataset"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="/usr/share/datasets", help="where Fashion-MNIST lies")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--test-seeds", type=int, default=100, help="for size and power, which need more")
    parser.add_argument("--datasets", nargs="+", default=["digits", "fashion_mnist"])
    parser.add_argument("--parts", nargs="+", default=["cells", "checks", "test"], help="what to measure")
    parser.add_argument("--out", type=Path, help="a JSON file to put the figures into, in place of older ones")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only show a file written before")
    options = parser.parse_args()
    if options.show is not None:
        show(json.loads(options.show.read_text()))
        return 0
    machine = {"python": platform.python_version(), "numpy": np.__version__, "cpus": os.cpu_count()}
    record: dict[str, Any] = {**machine, "cells": [], "test": [], "checks": []}
    parts = {
        "cells": (accuracy_of, options.seeds),
        "checks": (checks_of, options.seeds),
        "test": (test_of, options.test_seeds),
    }
    for name in options.datasets:
        pool = read(name, options.root)
        for part in options.parts:
            measure, seeds = parts[part]
            record[part] += measure(pool, seeds)
    if options.out is not None:
        old = json.loads(options.out.read_text()) if options.out.exists() else {}
        record |= {part: _merged(old.get(part, []), record[part]) for part in parts}
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    show(record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
