"""How often the two checks of `cadr.diagnose` warn with reason, and without.

    python benchmarks/diagnosis_checks.py --out benchmarks/diagnosis_checks.json     # --show FILE only shows

Does more than the class decide who is labelled, and is there a class that nobody labelled? Images as in diagnosis.py:
at most 50 labels of a class, γ times fewer of the rarest. Tables: real ones of scikit-learn, Gaussian classes, which a
linear classifier tells apart as well as can be, and rings, one within the other, which it cannot tell apart at all.
Seeds start at 20,000: limits and ridge were chosen on smaller ones.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cadr.data import Pool
from cadr.data.shuffle import ceilings
from cadr.diagnosis.diagnose import diagnose

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.diagnosis_draws import by_count, by_features, by_rates, read, table
from benchmarks.diagnosis_table import show_checks

FIRST_SEED = 20_000
N_MAX = 50
GAMMAS = (1, 5, 20)
TABLES = {"wine": 30, "breast cancer": 80, "Gaussian classes": 100, "rings": 120}  # labels
RATE = 6.0  # how many times less often the last class of a table is labelled, where the class decides
IMAGE_KINDS = ("class", "class and feature", "a class without labels")
TABLE_KINDS = ("chance", "class", "feature", "class and feature")
OTHERS = ("feature", "class and feature")  # what decides where the assumption does not hold


def image_pool(name: str, root: str, decides: str, gamma: int, seed: int) -> Pool:
    pool, counts = read(name, root), ceilings(N_MAX, gamma, 10)
    if decides == "class and feature":
        return by_features(pool, counts, seed)
    if decides == "a class without labels":
        counts[seed % 10] = 0
    return by_count(pool, counts, seed)[0]


def table_pool(name: str, decides: str, seed: int) -> Pool:
    gamma = RATE if decides.startswith("class") else 1.0
    return by_rates(table(name, seed), TABLES[name], gamma, "feature" in decides, seed)


def one(name: str, root: str, decides: str, gamma: int | None, seed: int) -> dict[str, Any]:
    pool = table_pool(name, decides, seed) if gamma is None else image_pool(name, root, decides, gamma, seed)
    found = diagnose(pool, seed=seed)
    warned = bool(found.other_than_class)
    return {
        "auc": found.domain_auc,
        "warned": warned,
        "far": found.far_share > found.far_limit,
        "unqualified": not found.missing_at_random and not warned,
    }


def record_of(name: str, decides: str, gamma: int | None, draws: list[dict[str, Any]]) -> dict[str, Any]:
    aucs = [draw["auc"] for draw in draws]
    return {
        "dataset": name,
        "decides": decides,
        "gamma": gamma,
        "of": len(draws),
        "auc": [round(float(f(aucs)), 3) for f in (np.mean, min, max)],
        **{key: sum(draw[key] for draw in draws) for key in ("warned", "far", "unqualified")},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="/usr/share/datasets", help="where Fashion-MNIST lies")
    parser.add_argument("--seeds", type=int, default=24, help="of images")
    parser.add_argument("--table-seeds", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only show a file written before")
    options = parser.parse_args()
    if options.show is not None:
        show_checks(json.loads(options.show.read_text()))
        return 0
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the processes as they start: each keeps to one thread
    start = time.perf_counter()
    settings: list[tuple[str, str, int | None]] = [(n, kind, None) for n in TABLES for kind in TABLE_KINDS]
    settings += [(n, kind, g) for n in ("digits", "fashion_mnist") for kind in IMAGE_KINDS for g in GAMMAS]
    with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as executor:
        waiting = {}
        for name, decides, gamma in settings:
            seeds = range(FIRST_SEED, FIRST_SEED + (options.table_seeds if gamma is None else options.seeds))
            waiting[name, decides, gamma] = [executor.submit(one, name, options.root, decides, gamma, s) for s in seeds]
        found = []
        for at, futures in waiting.items():
            found.append(record_of(*at, [f.result() for f in futures]))
            print(found[-1], flush=True)
    record = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "first_seed": FIRST_SEED,
        "checks": found,
    }
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    show_checks(record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
