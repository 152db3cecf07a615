"""Errors, coverage, size and power of `cadr.diagnose` on real data, beside those of a study.

    python benchmarks/diagnosis.py --out benchmarks/diagnosis.json     # all of it; --show FILE only shows

Labels of scikit-learn's digits (1,797 images) and of Fashion-MNIST (6,000 images drawn anew for each seed, found under
--root; Debian's dataset-fashion-mnist puts it under /usr/share/datasets), 64 principal components each, are made to
miss by class: at most 50 of a class are kept, γ times fewer of the rarest. "Theirs" are the figures of the study that
the method comes from. Seeds start at 20,000: whatever was chosen by trying was chosen on smaller ones. The checks
of the assumptions are measured by diagnosis_checks.py, and how long large data take by diagnosis_speed.py.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cadr.data import Pool
from cadr.data.pool import MISSING
from cadr.data.shuffle import ceilings
from cadr.diagnosis.cross_fit import CrossFit, cross_fit
from cadr.diagnosis.diagnose import REPEATS, diagnose, intervals, missing_at_random, unlabelled_shares
from cadr.diagnosis.features import fit_features
from cadr.diagnosis.result import ALPHA, ESTIMABLE

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.diagnosis_draws import by_chance, by_count, read
from benchmarks.diagnosis_table import CELLS, show

FIRST_SEED = 20_000
N_MAX = 50
RANDOM = (100, 200, 500)  # labels missing at random
SCARCE = (40, 80)  # labels missing at random, of classes so unequal that most draws have single labels
TAIL = 20  # how many times the rarest class is rarer than the commonest, then
PERMUTATIONS = 499  # for size and power; a diagnosis makes four times as many, for a p-value with more digits
FEW = ((3, 18), (5, 22))  # γ, and the labels of the first class: 114 and 116 in all


class Data:
    """What a worker needs to know beside the seed."""

    def __init__(self, name: str, root: str | None) -> None:
        self.name, self.root = name, root

    @property
    def pool(self) -> Pool:
        return read(self.name, self.root)


def fits_of(
    pool: Pool, random: np.random.Generator, repeats: int, hold_out_single: bool = False
) -> tuple[list[CrossFit], np.ndarray]:
    """The cross-fits alone, and the labels."""
    labelled, unlabelled = np.flatnonzero(pool.labels != MISSING), np.flatnonzero(pool.labels == MISSING)
    y = np.unique(pool.labels[labelled], return_inverse=True)[1]
    features = fit_features(pool, np.arange(len(pool.labels)), random)
    return [cross_fit(features, labelled, y, unlabelled, random, hold_out_single) for _ in range(repeats)], y


def cell(data: Data, gamma: int, tail: bool, seed: int) -> dict[str, Any]:
    """One draw: errors in percentage points, which intervals cover, what the test says."""
    made, truth = by_count(data.pool, ceilings(N_MAX, gamma, 10), seed, 20.0 if tail else 1.0)
    diagnosis = diagnose(made, seed=seed)
    random = np.random.default_rng(seed)
    fits, y = fits_of(made, random, REPEATS)
    shares = unlabelled_shares(fits, y)  # those of the diagnosis, and of classes for which it gives none
    error = 100 * np.abs(shares.share - truth)
    estimates = {"raw": shares.raw, "recalibrated": shares.recalibrated, "bbse": bbse(fits[0], y)}
    unshown = intervals(shares, fits, y, random) if min(c.labels for c in diagnosis.classes) < ESTIMABLE else truth
    covered = []
    for c, other, q in zip(diagnosis.classes, unshown, truth, strict=True):
        low, high = other if c.share_interval is None else c.share_interval
        covered.append((c.labels, bool(low <= q <= high), 100 * float(high - low)))
    return {
        "error": error.mean(),
        "largest_error": error.max(),
        "covered": covered,
        "rejected": not diagnosis.missing_at_random,
        **{name: 100 * np.abs(q - truth).mean() for name, q in estimates.items()},
    }


def bbse(fit: CrossFit, y: np.ndarray) -> np.ndarray:
    """Black-box shift estimation (Lipton et al., 2018), from hard predictions."""
    classes = fit.labelled.shape[1]
    joint = np.zeros((classes, classes))
    np.add.at(joint, (fit.labelled.argmax(1), y), 1.0 / len(y))
    predicted = np.bincount(fit.unlabelled.argmax(1), minlength=classes) / len(fit.unlabelled)
    share = np.maximum(np.linalg.lstsq(joint, predicted, rcond=None)[0] * np.bincount(y) / len(y), 0.0)
    return np.asarray(share / share.sum())


def rejects(made: Pool, seed: int) -> bool:
    random = np.random.default_rng(seed)
    return missing_at_random(fits_of(made, random, 1, hold_out_single=True)[0][0], random, PERMUTATIONS).p_value < ALPHA


def chance_rejects(data: Data, labels: int, gamma: int, seed: int) -> bool:
    return rejects(by_chance(data.pool, labels, gamma, seed), seed)


def scarce_rejects(data: Data, labels: int, seed: int) -> bool:
    return rejects(by_chance(data.pool, labels, 1, seed, TAIL), seed)


def count_rejects(data: Data, n_max: int, gamma: int, seed: int) -> bool:
    return rejects(by_count(data.pool, ceilings(n_max, gamma, 10), seed)[0], seed)


def seconds_of(data: Data, seed: int) -> dict[str, float]:
    """CPU seconds of each part of a diagnosis, and of a whole one."""
    made, _ = by_count(data.pool, ceilings(N_MAX, 20, 10), seed)
    random = np.random.default_rng(seed)
    at = [time.process_time()]
    fits, y = fits_of(made, random, REPEATS)
    at.append(time.process_time())
    shares = unlabelled_shares(fits, y)
    at.append(time.process_time())
    intervals(shares, fits, y, random)
    at.append(time.process_time())
    missing_at_random(fits[0], random)
    at.append(time.process_time())
    diagnose(made)
    at.append(time.process_time())
    return dict(zip(("fit", "estimate", "bootstrap", "test", "all"), np.diff(at).tolist(), strict=True))


class Run:
    """Draws handed to the processes; results are asked for when all have been handed out."""

    def __init__(self, executor: ProcessPoolExecutor, seeds: int, test_seeds: int) -> None:
        self.executor, self.seeds, self.test_seeds = executor, seeds, test_seeds

    def over_seeds(self, seeds: int, work: Callable[..., Any], *setting: Any) -> list[Any]:
        return [self.executor.submit(work, *setting, FIRST_SEED + seed) for seed in range(seeds)]

    def __call__(self, sets: list[Data]) -> dict[str, Any]:
        cells = {(d.name, *at): self.over_seeds(self.seeds, cell, d, *at) for d in sets for at in CELLS}
        tests = {}
        for d in sets:
            for n in RANDOM:
                tests[d.name, 1, f"{n}, at random"] = self.over_seeds(self.test_seeds, chance_rejects, d, n, 1)
            for n in SCARCE:
                label = f"{n}, at random, of unequal classes"
                tests[d.name, 1, label] = self.over_seeds(self.test_seeds, scarce_rejects, d, n)
            for gamma, first in FEW:
                n = int(ceilings(first, gamma, 10).sum())
                for how, work, size in (("drawn", chance_rejects, n), ("of fixed number", count_rejects, first)):
                    label = f"{n}, γ = {gamma}, {how}"
                    tests[d.name, gamma, label] = self.over_seeds(self.test_seeds, work, d, size, gamma)
        seconds = self.over_seeds(5, seconds_of, sets[-1])
        return {
            "cells": [cell_record(at, [f.result() for f in futures]) for at, futures in _announced(cells)],
            "test": [
                {
                    "dataset": name,
                    "labels": label,
                    "gamma": gamma,
                    "rejected": sum(f.result() for f in futures),
                    "of": len(futures),
                }
                for (name, gamma, label), futures in _announced(tests)
            ],
            "cpu_seconds": _means([f.result() for f in seconds]),
        }


def _announced(settings: dict[Any, Any]) -> Any:
    for at, futures in settings.items():
        yield at, futures
        print(*at, flush=True)


def cell_record(at: tuple[str, int, bool], draws: list[dict[str, Any]]) -> dict[str, Any]:
    every = [interval for draw in draws for interval in draw["covered"]]
    shown = [interval for interval in every if interval[0] >= ESTIMABLE]
    by_labels: dict[str, list[bool]] = {}
    for labels, inside, _ in every:
        group = str(labels) if labels < 5 else "5 to 9" if labels < 10 else "10 up"
        by_labels.setdefault(group, []).append(inside)
    errors = [draw["error"] for draw in draws]
    return {
        "dataset": at[0],
        "gamma": at[1],
        "unlabelled": "reversed" if at[2] else "uniform",
        "seeds": len(draws),
        **_means([{k: v for k, v in draw.items() if k != "covered"} for draw in draws]),
        "error_standard_error": _rounded(np.std(errors, ddof=1) / np.sqrt(len(errors))),
        "covered": _rounded(np.mean([inside for _, inside, _ in shown])),
        "width": _rounded(np.mean([width for *_, width in shown])),
        "coverage_by_labels": {k: [int(np.sum(v)), len(v)] for k, v in sorted(by_labels.items())},
    }


def _means(draws: list[dict[str, Any]]) -> dict[str, float]:
    return {name: _rounded(np.mean([draw[name] for draw in draws])) for name in draws[0]}


def _rounded(value: Any) -> float:
    return round(float(value), 3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="/usr/share/datasets", help="where Fashion-MNIST lies")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--test-seeds", type=int, default=100, help="for size and power, which need more")
    parser.add_argument("--datasets", nargs="+", default=["digits", "fashion_mnist"])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only show a file written before")
    options = parser.parse_args()
    if options.show is not None:
        show(json.loads(options.show.read_text()))
        return 0
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the processes as they start: each keeps to one thread
    start = time.perf_counter()
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as executor:
        sets = [Data(name, options.root) for name in options.datasets]
        found = Run(executor, options.seeds, options.test_seeds)(sets)
    record = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "first_seed": FIRST_SEED,
        **found,
    }
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    show(record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
