"""How long opening data takes, and how much memory it adds.

    python benchmarks/open_large.py [--rows 10000000] [--out benchmarks/open_large.json]

A matrix of 10 million rows is made as a sparse file; only its labels are read when it is opened. CIFAR-10, if it is
under CADR_DATA or data/, is opened as it lies there, and again as official python batches and binary files written
from it. Every opening is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import platform
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cadr.data import open_data
from cadr.data.benchmarks import find

LIMIT_MB = 100.0


def resident() -> tuple[float, float]:
    """Resident memory of this process and its highest so far, in MB (Linux)."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return tuple(int(lines[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    before, _ = resident()
    start = time.perf_counter()
    pool = open_data(**arguments)
    seconds = time.perf_counter() - start
    after, highest = resident()
    return {
        "rows": len(pool.labels),
        "megabytes": round(pool.examples.nbytes / 1e6, 1),
        "seconds": round(seconds, 3),
        "added_mb": round(after - before, 1),
        "added_at_most_mb": round(highest - before, 1),
    }


def alone(arguments: dict[str, Any]) -> dict[str, Any]:
    """Measured in a fresh process, whose highest memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(measure, arguments).result()


def write_matrix(folder: Path, rows: int) -> dict[str, Any]:
    """A sparse file: zeros that take no room on the disk."""
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(rows, 64))
    y = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.int64, shape=(rows,))
    x[-1], y[-1] = 1.0, 1
    return {"spec": folder / "x.npy", "labels": folder / "y.npy"}


def write_batches(folder: Path) -> dict[str, dict[str, Any]]:
    """CIFAR-10 in both official formats."""
    pool = open_data("cifar10")
    parts = [(f"data_batch_{i + 1}", slice(10_000 * i, 10_000 * (i + 1))) for i in range(5)]
    chosen = [(name, pool.examples[rows], pool.labels[rows]) for name, rows in parts]
    assert pool.test_examples is not None
    assert pool.test_labels is not None
    python, binary = folder / "cifar-10-batches-py", folder / "cifar-10-batches-bin"
    python.mkdir()
    binary.mkdir()
    for name, x, y in [*chosen, ("test_batch", pool.test_examples, pool.test_labels)]:
        planes = np.ascontiguousarray(x.transpose(0, 3, 1, 2)).reshape(len(x), -1)
        (python / name).write_bytes(pickle.dumps({b"data": planes, b"labels": y.tolist()}, protocol=4))
        records = np.concatenate([y.astype(np.uint8)[:, None], planes], axis=1)
        (binary / f"{name}.bin").write_bytes(records.tobytes())
    return {
        "CIFAR-10, python batches": {"spec": "cifar10", "root": python},
        "CIFAR-10, binary": {"spec": "cifar10", "root": binary},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        matrix = f"{options.rows:,} rows of 64 features"
        openings = {matrix: write_matrix(folder, options.rows)}
        for place in find("cifar10")[:1]:
            openings[f"CIFAR-10, {place.form.path}"] = {"spec": "cifar10"}
            openings |= write_batches(folder)
        figures = {name: alone(arguments) for name, arguments in openings.items()}
    for name, figure in figures.items():
        print(
            f"{name}: {figure['megabytes']:,} MB of examples opened in {figure['seconds']} s, "
            f"adding {figure['added_mb']} MB of resident memory (at most {figure['added_at_most_mb']} MB)"
        )
    if options.out is not None:
        machine = {"python": platform.python_version(), "numpy": np.__version__, "cpus": os.cpu_count()}
        options.out.write_text(json.dumps({**machine, "openings": figures}, indent=1) + "\n")
    return 0 if figures[matrix]["added_at_most_mb"] < LIMIT_MB else 1


if __name__ == "__main__":
    raise SystemExit(main())
