"""How fast `cadr predict` is and how much memory it takes: one million rows of 64 features, each kind of file.

    python benchmarks/predict.py            # writes benchmarks/predict.json

Each prediction is a process of its own with two threads. Times include starting Python and loading the run. The system
counts a process's peak of resident memory from that of the process that started it, so this one stays small itself.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

FEATURES = 64
BLOCK = 50_000  # rows made together
RECORD = Path(__file__).with_suffix(".json")


def make(folder: Path, rows: int) -> None:
    """The same rows as an array, as Parquet and as CSV, with an identifier where there can be one."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    x = np.lib.format.open_memmap(folder / "rows.npy", mode="w+", dtype=np.float32, shape=(rows, FEATURES))
    names = [f"f{i}" for i in range(FEATURES)]
    schema = pa.schema([("id", pa.string()), *((name, pa.float32()) for name in names)])
    with (
        parquet.ParquetWriter(folder / "rows.parquet", schema) as table,
        csv.CSVWriter(folder / "rows.csv", schema) as text,
    ):
        for start in range(0, rows, BLOCK):
            stop = min(start + BLOCK, rows)
            x[start:stop] = np.random.default_rng(start).normal(size=(stop - start, FEATURES))
            ids = pa.array([f"row-{i}" for i in range(start, stop)])
            batch = pa.record_batch([ids, *(pa.array(column) for column in x[start:stop].T)], schema=schema)
            table.write_batch(batch)
            text.write_batch(batch)


def train(folder: Path) -> Path:
    """A run of the network that such data get by default; how good it is does not matter here."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, FEATURES)).astype(np.float32)
    lines = [",".join([*(f"f{i}" for i in range(FEATURES)), "label"])]
    labels = ["abcde"[int(abs(row[0]) * 2) % 5] if i < 1000 else "" for i, row in enumerate(x)]
    lines += [",".join([*map(str, row), label]) for row, label in zip(x, labels, strict=True)]
    (folder / "train.csv").write_text("\n".join(lines))
    steps = ["--steps", "50", "--batch", "32", "--ratio", "4", "--evaluations", "1", "--device", "cpu"]
    command = [sys.executable, "-m", "cadr", "train", str(folder / "train.csv"), *steps, "--out", str(folder / "run")]
    subprocess.run(command, check=True)
    return folder / "run"


def measure(run: Path, data: Path, out: Path, rows: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "cadr", "predict", str(run), str(data), "--out", str(out), "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    begun = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    assert status == 0, status
    return {
        "from": data.suffix[1:],
        "to": out.suffix[1:],
        "rows": rows,
        "seconds": round(seconds, 1),
        "rows_per_second": round(rows / seconds),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_resident_mib": round(usage.ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = train(folder)
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, arguments.rows))
        maker.start()
        maker.join()
        load = os.getloadavg()[0]
        measured = []
        for data, out in (("npy", "csv"), ("npy", "parquet"), ("parquet", "parquet"), ("csv", "csv")):
            measured.append(measure(run, folder / f"rows.{data}", folder / f"predictions.{out}", arguments.rows))
            print(measured[-1], flush=True)
    record = {
        "features": FEATURES,
        "cores": os.cpu_count(),
        "load_before": round(load, 1),
        "machine": platform.machine(),
        "torch": version("torch"),
        "predictions": measured,
    }
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
