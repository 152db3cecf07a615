"""How long `cadr.diagnose` takes, and how much memory it needs beside the data.

    python benchmarks/diagnosis_speed.py [--out benchmarks/diagnosis_speed.json]

Ten Gaussian classes in a memory-mapped matrix, some classes labelled ten times less often than others. CPU seconds are
those of all threads together: where other programs keep the machine busy they say more than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from cadr.data import from_arrays, open_data
from cadr.data.pool import MISSING
from cadr.diagnosis.diagnose import diagnose

SIZES = ((6_000, 64, 300, 3.0), (1_000_000, 512, 100_000, 120.0))  # rows, features, labels, seconds allowed
RATES = np.linspace(1.0, 0.1, 10)


def write(folder: Path, rows: int, width: int, labels: int) -> tuple[Path, Path, np.ndarray]:
    """The matrix, its labels, and the class shares of the rows without one."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(10, width)).astype(np.float32) * np.float32(4.0 / np.sqrt(width))
    truth = random.integers(0, 10, rows)
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(rows, width))
    for start in range(0, rows, 10_000):
        part = truth[start : start + 10_000]
        x[start : start + 10_000] = centres[part] + random.standard_normal((len(part), width), dtype=np.float32)
    x.flush()
    turn = np.argsort(random.exponential(size=rows) / RATES[truth])
    known = np.full(rows, MISSING)
    known[turn[:labels]] = truth[turn[:labels]]
    np.save(folder / "y.npy", known)
    return folder / "x.npy", folder / "y.npy", np.bincount(truth[known == MISSING], minlength=10) / (rows - labels)


def measure(rows: int, width: int, labels: int, allowed: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        x, y, share = write(Path(folder), rows, width, labels)
        pool = open_data(x, labels=y)
        with Highest() as memory:
            start, cpu = time.perf_counter(), time.process_time()
            diagnosis = diagnose(pool)
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    error = np.abs(np.array([c.share for c in diagnosis.classes]) - share)
    return {
        "rows": rows,
        "features": width,
        "labels": labels,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "seconds_allowed": allowed,
        "data_mb": round(rows * width * 4 / 1e6),
        "memory_mb": round(memory.added),
        "error_points": round(100 * float(error.mean()), 3),
        "p_value": diagnosis.p_value,
    }


class Highest:
    """The most memory of its own (not pages of mapped files) that the process had meanwhile, in MB above the start."""

    def __enter__(self) -> Highest:
        self.before = self.highest = _own_memory()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        self.added = self.highest - self.before

    def _watch(self) -> None:
        while not self.stop.wait(0.05):
            self.highest = max(self.highest, _own_memory())


def _own_memory() -> float:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["RssAnon"].split()[0]) * 1024 / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    options = parser.parse_args()
    random = np.random.default_rng(0)
    warm = from_arrays(random.normal(size=(60, 2)), np.where(np.arange(60) < 30, np.arange(60) % 2, MISSING))
    diagnose(warm)  # importing scikit-learn is not what is measured
    figures = []
    for size in SIZES:
        figures.append(measure(*size))
        print(json.dumps(figures[-1]), flush=True)
    if options.out is not None:
        machine = {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "cpus": os.cpu_count(),
            "load_average": round(os.getloadavg()[0], 1),
        }
        options.out.write_text(json.dumps({**machine, "diagnoses": figures}, indent=1) + "\n")
    return 0 if all(figure["seconds"] <= figure["seconds_allowed"] for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
