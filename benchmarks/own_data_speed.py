"""How long the default for people's own data takes on large tables, on two cores.

    taskset -c 0,1 python benchmarks/own_data_speed.py      # writes own_data_speed.json

scikit-learn's make_classification, some 8 % of the rows labelled, 20 : 1 by class.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2"))

import numpy as np
import torch
from sklearn.datasets import make_classification

from cadr.ensemble.fit import fit_ensemble

RECORD = Path(__file__).with_suffix(".json")
SIZES = ((5_000, 400, 10), (50_000, 100, 10))  # rows, features, classes


def measure(rows: int, features: int, classes: int) -> dict[str, float]:
    X, y = make_classification(
        rows, features, n_informative=30, n_redundant=20, n_classes=classes, class_sep=2.0, random_state=0
    )
    random = np.random.default_rng(0)
    chance = 0.3 * 20.0 ** -(y / (classes - 1))
    labels = np.where(random.random(rows) < chance, y, -1)
    scale = X.std(0)
    x = ((X - X.mean(0)) / scale).astype(np.float32)
    heard: list[float] = []
    begun, busy = time.perf_counter(), time.process_time()
    found = fit_ensemble(x, labels, scale, classes, 0, progress=lambda what, share: heard.append(share))
    seconds = time.perf_counter() - begun
    right = (found.probabilities().argmax(1) == y)[labels < 0].mean()
    return {
        "rows": rows,
        "features": features,
        "classes": classes,
        "labels": int((labels >= 0).sum()),
        "seconds": round(seconds, 1),
        "processor seconds": round(time.process_time() - busy, 1),
        "reports of progress": len(heard),
        "accuracy": round(100 * float(right), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    found = [measure(*size) for size in SIZES]
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
