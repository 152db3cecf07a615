"""Choose what the diagnosis leaves to choice, on draws that no reported figure uses.

    python benchmarks/diagnosis_tune.py [--out benchmarks/diagnosis_tune.json]

Printed are the errors of the shares by number of cross-fits and by weight of the raw estimate, and the factors of the
interval √(k·sd_boot² + g·(raw − recalibrated)²)·√(1 + a/n_c): of those on the grid that cover at least 93 % of the
truths in *each* setting (90 % is promised; the margin is for data unlike these), the narrowest on average.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cadr.data.shuffle import ceilings
from cadr.diagnosis.diagnose import DRAWS, REPEATS
from cadr.diagnosis.result import ESTIMABLE
from cadr.estimate.label_shift import Z90, bootstrap_shares, class_shares

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.diagnosis import N_MAX, Data, fits_of
from benchmarks.diagnosis_draws import by_count
from benchmarks.diagnosis_table import CELLS

FIRST_SEED, SEEDS = 1_000, 24
LEAST = 0.93
WEIGHTS = (0.5, 0.75, 1.0)
GRID = {"k": (1.0, 1.5, 2.0, 3.0, 4.0), "g": (0.5, 1.0, 2.0, 3.0), "a": (0.0, 5.0, 10.0, 20.0)}


def one(data: Data, gamma: int, tail: bool, seed: int) -> dict[str, np.ndarray]:
    """What every choice is computed from: both estimates of each cross-fit, and bootstrap draws of the shares."""
    made, truth = by_count(data.pool, ceilings(N_MAX, gamma, 10), seed, 20.0 if tail else 1.0)
    random = np.random.default_rng(seed)
    fits, y = fits_of(made, random, REPEATS)
    each = [class_shares(fit.labelled, y, fit.unlabelled) for fit in fits]
    draws = [bootstrap_shares(fit.labelled, y, fit.unlabelled, DRAWS // REPEATS, random) for fit in fits]
    return {
        "truth": truth,
        "raw": np.array([shares.raw for shares in each]),
        "recalibrated": np.array([shares.recalibrated for shares in each]),
        "share": np.mean([shares.share for shares in each], axis=0),
        "variance": np.concatenate(draws).var(0, ddof=1),
        "labels": np.bincount(y),
    }


def error(draws: list[dict[str, np.ndarray]], repeats: int, weight: float) -> float:
    """Mean absolute error in percentage points."""
    found = [
        weight * d["raw"][:repeats].mean(0) + (1 - weight) * d["recalibrated"][:repeats].mean(0) - d["truth"]
        for d in draws
    ]
    return 100 * float(np.abs(found).mean())


def covered(draws: list[dict[str, np.ndarray]], k: float, g: float, a: float) -> tuple[float, float]:
    """Coverage and mean width (percentage points) of the intervals that would be shown."""
    inside, width = [], []
    for d in draws:
        gap = d["raw"].mean(0) - d["recalibrated"].mean(0)
        margin = Z90 * np.sqrt((k * d["variance"] + g * gap**2) * (1 + a / d["labels"]))
        low, high = np.clip(d["share"] - margin, 0, 1), np.clip(d["share"] + margin, 0, 1)
        shown = d["labels"] >= ESTIMABLE
        inside += ((low <= d["truth"]) & (d["truth"] <= high))[shown].tolist()
        width += (100 * (high - low))[shown].tolist()
    return float(np.mean(inside)), float(np.mean(width))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="/usr/share/datasets", help="where Fashion-MNIST lies")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    seeds = range(FIRST_SEED, FIRST_SEED + SEEDS)
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as executor:
        sets = [Data(name, options.root) for name in ("digits", "fashion_mnist")]
        futures = {
            f"{d.name}, γ = {gamma}{', reversed' * tail}": [executor.submit(one, d, gamma, tail, s) for s in seeds]
            for d, (gamma, tail) in itertools.product(sets, CELLS)
        }
        settings = {name: [f.result() for f in several] for name, several in futures.items()}
    errors: dict[str, Any] = {
        f"{repeats} cross-fits, weight {weight}": [round(error(s, repeats, weight), 3) for s in settings.values()]
        for repeats, weight in itertools.product((1, REPEATS), WEIGHTS)
    }
    rules: list[dict[str, Any]] = []
    for factors in itertools.product(*GRID.values()):
        coverage, width = zip(*(covered(s, *factors) for s in settings.values()), strict=True)
        rules.append(
            {
                **dict(zip(GRID, factors, strict=True)),
                "width": round(float(np.mean(width)), 2),
                "coverage": [round(c, 3) for c in coverage],
            }
        )
    best = sorted((r for r in rules if min(r["coverage"]) >= LEAST), key=lambda r: r["width"])[:5]
    plain = next(r for r in rules if (r["k"], r["g"], r["a"]) == (1.0, 1.0, 5.0))
    record = {"settings": list(settings), "errors": errors, "study_rule": plain, "narrowest": best}
    print(json.dumps(record, indent=1, ensure_ascii=False))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
