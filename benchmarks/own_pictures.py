"""Pictures themselves, learned by a network from nothing, beside the vectors that a pretrained network makes of them.

    python benchmarks/own_pictures.py --sources FOLDER --cache FOLDER     # writes own_pictures.json

CIFAR-10's pictures of own/pictures.py, labels missing by class as own/missing.py draws them. The networks are what
CADRClassifier makes of pictures on a CPU: a small convolutional one, as many steps as the rows ask for. The vectors are
those of own/sets.py. No seed of these has decided anything.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from benchmarks.own.methods import METHODS, Task  # noqa: E402
from benchmarks.own.missing import MISSINGNESS, draw  # noqa: E402
from benchmarks.own.pictures import PICTURES  # noqa: E402
from benchmarks.own.scores import scores  # noqa: E402
from benchmarks.own.sets import CACHE, load  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
NAME, NETWORKS, ON_VECTORS = "cifar10", ("cap_cai", "cadr"), ("logistic_balanced", "ensemble")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, default=ROOT / "data", help="folder of cifar10.npz (default: data)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="the data sets (default: data/own)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[11], help="default: 11")
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    pixels, y, names = PICTURES[NAME](arguments.sources, Path("/"))
    vectors = load(NAME, arguments.cache)
    assert np.array_equal(y, vectors.y)  # the same pictures in the same order
    found: list[dict[str, Any]] = json.loads(arguments.out.read_text()) if arguments.out.is_file() else []
    done = {(r["missing"], r["seed"], r["method"], r["sees"]) for r in found}
    for seed in arguments.seeds:
        for missing in MISSINGNESS[:2]:
            rows, labelled = draw(NAME, y, missing, seed)
            labels = np.where(labelled, y[rows], -1)
            flat = pixels[rows].reshape(len(rows), -1).astype(np.float32)
            jobs: list[tuple[str, str, Any]] = [("logistic_balanced", "pixels", flat)]
            jobs += [(name, "vectors", vectors.X[rows]) for name in ON_VECTORS]
            jobs += [(name, "pixels", pixels[rows]) for name in NETWORKS]
            for method, sees, x in jobs:
                if (missing, seed, method, sees) in done:
                    continue
                begun = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    probabilities = METHODS[method](Task(x, labels, len(names), seed))
                facts = {
                    "missing": missing,
                    "seed": seed,
                    "method": method,
                    "sees": sees,
                    "labels": int(labelled.sum()),
                }
                result = scores(probabilities, y[rows][~labelled], len(names))
                found.append(facts | result | {"seconds": round(time.process_time() - begun, 1)})
                print(found[-1], flush=True)
                arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
