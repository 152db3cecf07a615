"""Whether `--renaming` leaves names alone that are right: small tables and digits, where matching names gains little.

    python benchmarks/right_names.py        # writes right_names.json and right_names.md beside it, minutes on two cores

The populations of populations.py, and digits as rivals.py trains them, by CADR and FixMatch. A run in which names are
exchanged is trained again without; all others are the same run. Accuracy (%) is that on the rows without a label.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cells import markdown  # noqa: E402
from benchmarks.explain import explain  # noqa: E402
from benchmarks.matched import accuracy, matched_accuracy  # noqa: E402
from benchmarks.populations import SEEDS, SETTINGS  # noqa: E402
from benchmarks.rivals import SHARED  # noqa: E402

from cadr.config import Config  # noqa: E402
from cadr.data.pool import MISSING, Pool  # noqa: E402
from cadr.training import train  # noqa: E402

RECORD, OUT = (Path(__file__).with_suffix(suffix) for suffix in (".json", ".md"))
METHODS = ("cadr", "fixmatch")
TABLE = {"data": "table", "steps": 400, "batch": 32, "ratio": 4, "lr": 0.03, "ema": 0.98, "evaluations": 1}
DIGITS = {f"digits, γ = {gamma}": {"n_max": gamma, "gamma": float(gamma)} for gamma in (20, 50)}
Job = tuple[str, str, int]


def trained(job: Job, renaming: bool) -> tuple[int, float, float]:
    """How many pairs of names were exchanged, the accuracy at the end, and that which matching names could reach."""
    setting, method, seed = job
    more: dict[str, Any] = {"algorithm": method, "seed": seed, "renaming": renaming, "device": "cpu"}
    pool: Pool | None
    if setting in DIGITS:
        pool, flat = None, SHARED | {"protocol": "longtail", "evaluations": 1} | DIGITS[setting]
    else:
        x, truth, known = SETTINGS[setting](seed)
        names = tuple(map(str, range(int(truth.max()) + 1)))
        pool, flat = Pool(x.astype(np.float32), np.where(known, truth, MISSING), names, "table"), TABLE
        pool = dataclasses.replace(
            pool, test_examples=pool.examples[~known], test_labels=truth[~known].astype(np.int64)
        )
    with tempfile.TemporaryDirectory() as folder:
        records = list(train(Config.from_dict(flat | more), Path(folder) / "run", pool=pool))
    pairs = sum(len(record["exchanged"]) for record in records if record["kind"] == "renaming")
    confusion = next(record["confusion"] for record in records if record["kind"] == "evaluation")
    return pairs, accuracy(confusion), matched_accuracy(confusion)


def judge(job: Job) -> dict[str, Any]:
    torch.set_num_threads(1)
    pairs, reached, matched = trained(job, renaming=True)
    without = trained(job, renaming=False)[1] if pairs else reached
    setting, method, seed = job
    return {
        "setting": setting,
        "method": method,
        "seed": seed,
        "exchanged": pairs,
        "accuracy": round(reached, 2),
        "without": round(without, 2),
        "matched": round(matched, 2),
    }


def build(records: list[dict[str, Any]]) -> str:
    lines = []
    for setting in dict.fromkeys(r["setting"] for r in records):
        these = [r for r in records if r["setting"] == setting]
        means = [f"{np.mean([r[name] for r in these]):.2f}" for name in ("accuracy", "without", "matched")]
        lines.append([setting, str(len(these)), str(sum(r["exchanged"] > 0 for r in these)), *means])
    header = ["", "runs", "in which names were exchanged", "mean accuracy", "without renaming", "if names were matched"]
    return f"Written by `python benchmarks/right_names.py`.\n\n{markdown(header, lines)}\n"


def main() -> None:
    explain(__doc__)
    jobs = [(setting, method, seed) for setting in (*SETTINGS, *DIGITS) for method in METHODS for seed in SEEDS]
    with multiprocessing.get_context("spawn").Pool(2) as workers:
        records = []
        for record in workers.imap(judge, jobs):
            records.append(record)
            print(f"{len(records)} of {len(jobs)}: {record}", flush=True)
    RECORD.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    OUT.write_text(build(records), encoding="utf-8")


if __name__ == "__main__":
    main()
