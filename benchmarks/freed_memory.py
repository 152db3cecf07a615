"""What keeping freed memory saves on a CPU: a training step of CADR and predictions, with and without.

    python benchmarks/freed_memory.py [--out benchmarks/freed_memory.json]

Each case runs in processes of its own, on one core, in turns with and without; the median of the rounds is kept, and
the most memory that was ever resident. Without is what a variable of malloc's own does: it is then left alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cadr.algorithms import CADR
from cadr.augment import FeatureViews, ImageViews
from cadr.config import Config, Training
from cadr.data.pool import Pool
from cadr.estimate.calibration import uncalibrated
from cadr.inference.predictor import Predictor
from cadr.models import MLP, ConvNet
from cadr.optim import SGD
from cadr.training.feed import Inputs
from cadr.training.signature import InputSpec
from cadr.training.step import Step
from cadr.utils.memory import freed_memory_kept

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).with_suffix(".json")
CLASSES, ROUNDS = 10, 5
LEFT_ALONE = {"MALLOC_TOP_PAD_": "131072"}  # what it is anyhow


def pool(shape: tuple[int, ...], rows: int) -> Pool:
    draw = np.random.default_rng(0)
    images = len(shape) == 3
    x = draw.integers(0, 256, (rows, *shape), dtype=np.uint8) if images else draw.normal(size=(rows, *shape))
    labels = np.full(rows, -1)
    labels[: 20 * CLASSES] = np.arange(20 * CLASSES) % CLASSES
    names = tuple(str(c) for c in range(CLASSES))
    return Pool(x if images else x.astype(np.float32), labels, names, name="random")


def training(shape: tuple[int, ...], batch: int, steps: int) -> tuple[Callable[[], object], int]:
    inputs = Inputs.of(pool(shape, 2000), torch.device("cpu"))
    images = len(shape) == 3
    views = ImageViews() if images else FeatureViews()
    size = (shape[2], *shape[:2]) if images else shape
    model = (ConvNet() if images else MLP()).build(CLASSES, size)
    settings = Training(steps=10_000, batch=batch, ratio=7, seed=1)
    step = Step(model, CADR(), views, inputs, SGD(), settings, steps)
    return lambda: step.advance(steps), steps


def prediction(shape: tuple[int, ...], rows: int) -> tuple[Callable[[], object], int]:
    data = pool(shape, rows)
    spec = InputSpec.of(data, Inputs.of(data, torch.device("cpu")), False)
    images = len(shape) == 3
    model = (ConvNet() if images else MLP()).build(CLASSES, spec.model_shape)
    predictor = Predictor(model, spec, uncalibrated(CLASSES), Config("random", CADR()), torch.device("cpu"), 0)
    return lambda: predictor.logits(data.examples), 1


CASES: dict[str, Callable[[], tuple[Callable[[], object], int]]] = {
    "a step on 8×8 images, 32 labelled": lambda: training((8, 8, 3), 32, 20),
    "a step on 32×32 images, 16 labelled": lambda: training((32, 32, 3), 16, 5),
    "a step on 64 features, 64 labelled": lambda: training((64,), 64, 50),
    "predicting 10,000 images of 32×32": lambda: prediction((32, 32, 3), 10_000),
    "predicting 200,000 rows of 64 features": lambda: prediction((64,), 200_000),
}


def measure(case: str) -> dict[str, float]:
    """Milliseconds, and MiB at most, in this process."""
    torch.set_num_threads(1)
    work, times = CASES[case]()
    with freed_memory_kept():
        work()
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            work()
            taken.append((time.perf_counter() - start) / times)
    return {"ms": 1000 * min(taken), "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def in_a_process(case: str, environment: dict[str, str]) -> dict[str, float]:
    with tempfile.NamedTemporaryFile() as answer:
        command = [sys.executable, __file__, "--case", case, "--out", answer.name]
        subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"} | environment, check=True)
        read: dict[str, float] = json.loads(Path(answer.name).read_text(encoding="utf-8"))
        return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        options.out.write_text(json.dumps(measure(options.case)), encoding="utf-8")
        return
    record: dict[str, Any] = {"torch": torch.__version__, "rounds": ROUNDS, "cases": {}}
    for case in CASES:
        rounds = [(in_a_process(case, {}), in_a_process(case, LEFT_ALONE)) for _ in range(ROUNDS)]
        kept, left = ({key: statistics.median(r[i][key] for r in rounds) for key in ("ms", "mib")} for i in (0, 1))
        record["cases"][case] = {"kept": kept, "left alone": left}
        print(
            f"{case:42s} {left['ms']:8.1f} → {kept['ms']:8.1f} ms, {left['mib']:.0f} → {kept['mib']:.0f} MiB",
            flush=True,
        )
    options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
