"""What training on data beyond memory costs: memory and time of a step from 10^5 to 10^8 rows in a file.

    python benchmarks/streaming.py        # writes streaming.json; the files are sparse, and take little room

Each size is a process of its own: CADR with a small perceptron, 64 features of float32, 64 labelled and 448 unlabelled
rows a step. `memory_mib` is what the process holds at the end beyond what it held before it opened the data, without
pages of files, which the system takes back when it needs them. `step_ms` is the median of 40 pieces of 10 steps by the
clock, and `step_cpu_ms` by the processors, all threads together, which other programs prolong less. The labels, 8 bytes
a row, are a file as well. `resident` is the smallest size in memory, as it is without streaming.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from cadr.algorithms import CADR
from cadr.augment import FeatureViews
from cadr.config import Training
from cadr.data.pool import Pool
from cadr.models import MLP
from cadr.optim import SGD
from cadr.training.feed import Inputs, Streaming
from cadr.training.step import Step

RECORD = Path(__file__).with_suffix(".json")
SIZES = (10**5, 10**6, 10**7, 10**8)
FEATURES, LABELLED, PIECES, STEPS = 64, 1000, 40, 10


def lay_out(folder: Path, rows: int) -> None:
    """A sparse file of features, in which the labelled rows alone hold numbers, and one of labels."""
    shape = (rows, FEATURES)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, shape)
    random = np.random.default_rng(0)
    at = np.arange(LABELLED) * (rows // LABELLED)
    truth = np.arange(LABELLED) % 10
    x[at] = random.normal(size=(LABELLED, FEATURES)) + 3 * np.eye(10, FEATURES)[truth]
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int64, (rows,))
    for start in range(0, rows, 1 << 22):
        y[start : start + (1 << 22)] = -1
    y[at] = truth


def measure(folder: Path, streaming: bool) -> dict[str, float]:
    torch.set_num_threads(1)
    before = held()
    x, y = (np.load(folder / name, mmap_mode="r") for name in ("x.npy", "y.npy"))
    if streaming:
        mock.patch("cadr.training.streamed.available", return_value=1).start()  # as if there were no room
    else:
        x, y = np.array(x), np.array(y)
    begun = time.perf_counter()
    pool = Pool(x, y, tuple("abcdefghij"), "rows")
    inputs = Inputs.of(pool, torch.device("cpu"))
    torch.manual_seed(0)
    model = MLP((64,)).build(10, (FEATURES,))
    training = Training(steps=10_000, batch=64, ratio=7, seed=1)
    step = Step(model, CADR(), FeatureViews(), inputs, SGD(), training, STEPS)
    assert isinstance(step.feed, Streaming) == streaming
    step.advance(STEPS)
    opened = time.perf_counter() - begun
    spent = {"step_ms": time.perf_counter, "step_cpu_ms": time.process_time}
    times: dict[str, list[float]] = {name: [] for name in spent}
    for _ in range(PIECES):
        start = {name: clock() for name, clock in spent.items()}
        step.advance(STEPS)
        for name, clock in spent.items():
            times[name].append(1000 * (clock() - start[name]) / STEPS)
    found = {"memory_mib": held() - before, "seconds_to_first_step": opened}
    found |= {name: statistics.median(values) for name, values in times.items()}
    return {name: round(value, 2) for name, value in found.items()}


def held() -> float:
    """MiB of memory of this process that no file stands behind."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=2, metavar=("FOLDER", "HOW"), help=argparse.SUPPRESS)  # in a process of its own
    if one := parser.parse_args().one:
        print(json.dumps(measure(Path(one[0]), one[1] == "streaming")))
        return
    record: dict[str, object] = {"torch": torch.__version__, "features": FEATURES}
    for rows in SIZES:
        with tempfile.TemporaryDirectory(prefix="cadr-streaming-") as folder:
            lay_out(Path(folder), rows)
            for how in ("resident", "streaming") if rows == SIZES[0] else ("streaming",):
                done = subprocess.run(
                    [sys.executable, __file__, "--one", folder, how], capture_output=True, text=True, check=True
                )
                name = f"{rows}" if how == "streaming" else how
                record[name] = json.loads(done.stdout)
                print(name, record[name], flush=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
