"""Is a run of several ranks the run of one process? All methods with 1, 2 and 3 ranks, another number half-way, kills.

    python benchmarks/ranks.py --kills     # writes ranks.json; parts of it: --methods cadr … --ranks 2 3 half

200 steps of a small perceptron with batch norm on three clouds of points, 5 labelled and 15 unlabelled rows a step,
which divide by neither 2 nor 3; ReMixMatch without turned pictures, which points are not. Differences are the largest
over all records (`loss`: relative; `prior`: of P̂, absolute) and over all weights and averages at the end (relative to
the tensor's largest). `half` is a run that began with 3 ranks and went on with 2. Rounding stays rounding until a
pseudo-label's confidence lies at its threshold: then one more or less is used, and the runs part
(`records_with_another_mask` counts the records of 10 steps that tell).

The kills: SIGKILL of a random rank at ten random moments of a run of CADR whose number of ranks changes each time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from tests.training import rank, tiny

from cadr.algorithms import ALGORITHMS
from cadr.errors import CheckpointError
from cadr.models import MLP
from cadr.training import checkpoint, train

RECORD = Path(__file__).with_suffix(".json")
STEPS, HALF, KILLED, KILLS = 200, 100, 400, 10


def work(folder: Path, steps: int, stop: int, seconds: float, methods: list[str]) -> None:
    """As one rank: train, or go on training, each of these until `stop`."""
    torch.set_num_threads(1)
    for method in methods:
        settings = tiny.replace(rank.config(method, steps), log_every=10, checkpoint_seconds=seconds)
        settings = dataclasses.replace(settings, model=MLP((16,)))
        records = train(settings, folder / method, pool=tiny.pool())
        for record in records:
            if record["step"] >= stop:
                break
        records.close()


def run(count: int, folder: Path, stop: int, methods: list[str]) -> None:
    arguments = ("--work", str(folder), str(STEPS), str(stop), "1e9", *methods)
    for status, said in rank.ends(rank.start(count, *arguments, module="benchmarks.ranks"), 3600):
        if status:
            raise SystemExit(said)


def apart(one: Path, other: Path) -> dict[str, float]:
    """How far two runs are from one another."""
    ours, theirs = tiny.tensors(one), tiny.tensors(other)
    named = [name for name in ours if name.startswith(("weight.", "average.", "training."))]
    gaps = [float((ours[n] - theirs[n]).abs().max() / ours[n].abs().max().clamp(min=1e-3)) for n in named]
    train_records = [[r for r in tiny.metrics(path) if r["kind"] == "train"] for path in (one, other)]
    pairs = list(zip(*train_records, strict=True))
    loss = max(abs(a["loss"] - b["loss"]) / max(abs(a["loss"]), 1e-6) for a, b in pairs)
    prior = max(abs(p - q) for a, b in pairs for p, q in zip(a["prior"], b["prior"], strict=True))
    used = sum(a["mask"] != b["mask"] for a, b in pairs)
    return {
        "loss": float(f"{loss:.2g}"),
        "prior": float(f"{prior:.2g}"),
        "weights": float(f"{max(gaps):.2g}"),
        "records_with_another_mask": used,
    }


def kills(folder: Path, reference: Path) -> dict[str, Any]:
    """A run that loses a rank ten times; what it is in the end, beside one that never did."""
    generator, events = random.Random(0), []
    for count in [2, 3] * (KILLS // 2):
        arguments = ("--work", str(folder), str(KILLED), str(KILLED + 1), "0", "cadr")
        before = _saved(folder / "cadr")
        ranks = rank.start(count, *arguments, module="benchmarks.ranks")
        while _saved(folder / "cadr") <= before and all(each.poll() is None for each in ranks):
            time.sleep(0.05)
        time.sleep(generator.uniform(0, 2))
        victim = generator.randrange(count)
        at = _saved(folder / "cadr")
        ranks[victim].send_signal(signal.SIGKILL)
        rank.ends(ranks)
        kept = _saved(folder / "cadr")
        events.append({"ranks": count, "killed": victim, "saved_before": at, "saved_after": kept})
        if kept < at:
            raise SystemExit(f"a checkpoint was lost: {events[-1]}")
    arguments = ("--work", str(folder), str(KILLED), str(KILLED + 1), "1e9", "cadr")
    for status, said in rank.ends(rank.start(2, *arguments, module="benchmarks.ranks"), 3600):
        if status:
            raise SystemExit(said)
    for status, said in rank.ends(
        rank.start(1, "--work", str(reference), *arguments[2:], module="benchmarks.ranks"), 3600
    ):
        if status:
            raise SystemExit(said)
    steps = [[r["step"] for r in tiny.metrics(path / "cadr") if r["kind"] == "train"] for path in (folder, reference)]
    return {
        "events": events,
        "records_complete": steps[0] == steps[1],
        "apart": apart(reference / "cadr", folder / "cadr"),
        "last_accuracy": [tiny.result(path / "cadr")["last"] for path in (folder, reference)],
    }


def _saved(out: Path) -> int:
    """The step of the newest checkpoint that can be read."""
    found = []
    for name in (checkpoint.CURRENT, checkpoint.PREVIOUS):
        try:
            found.append(int(checkpoint.load(out / name)[0]["step"]))
        except CheckpointError:
            continue
    return max(found, default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="*", default=list(ALGORITHMS))
    parser.add_argument("--ranks", nargs="*", default=["2", "3", "half"], choices=("2", "3", "half"))
    parser.add_argument("--kills", action="store_true", help="the kills, too")
    parser.add_argument("--folder", type=Path, help="keep the runs there, and do not repeat finished ones")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cadr-ranks-") as folder:
        base = options.folder or Path(folder)
        if options.methods:
            run(1, base / "1", STEPS, options.methods)
        for name in options.ranks if options.methods else ():
            if name == "half":
                run(3, base / "half", HALF, options.methods)
            run(2 if name == "half" else int(name), base / name, STEPS, options.methods)
            _note({m: {name: apart(base / "1" / m, base / name / m)} for m in options.methods})
        if options.kills:
            _note({}, kills=kills(base / "killed", base / "not_killed"))


def _note(found: dict[str, dict[str, Any]], **more: Any) -> None:
    """Write down what is known so far."""
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {"methods": {}}
    record |= {"torch": torch.__version__, "steps": STEPS} | more
    for method, by_ranks in found.items():
        record["methods"].setdefault(method, {}).update(by_ranks)
        print(method, by_ranks, flush=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), sys.argv[6:])
    else:
        main()
