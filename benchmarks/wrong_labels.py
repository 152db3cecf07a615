"""How many wrong labels a report finds, and how many right ones it doubts: the tables of populations.py, and digits.

    python benchmarks/wrong_labels.py       # writes wrong_labels.json and wrong_labels.md beside it, minutes

Of a tenth of the labels another class is written down, and CADR is trained on them as `cadr train` would be on a file;
and again on the right labels. The report doubts labels held out by the model's prediction, and those trained on by what
the model predicts around them; what its prediction alone would tell of these stands beside it.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cells import markdown  # noqa: E402
from benchmarks.explain import explain  # noqa: E402
from benchmarks.populations import SETTINGS  # noqa: E402

from cadr.config import Config  # noqa: E402
from cadr.data import open_data  # noqa: E402
from cadr.data.pool import MISSING, Pool  # noqa: E402
from cadr.data.protocols import Longtail  # noqa: E402
from cadr.data.split import apply, make_split  # noqa: E402
from cadr.report.model_outputs import look  # noqa: E402
from cadr.report.runs import ReportedRun  # noqa: E402
from cadr.training import train  # noqa: E402
from cadr.training.target import diagnosed_target  # noqa: E402

RECORD, OUT = (Path(__file__).with_suffix(suffix) for suffix in (".json", ".md"))
SEEDS = (1,)
SHARE = 0.1  # of the labels, that are made wrong
DIGITS = "digits, γ = 20"
FLAT = {"data": "table", "algorithm": "cadr", "steps": 1000, "batch": 32, "ratio": 4, "lr": 0.1, "ema": 0.995}
Job = tuple[str, int, bool]


def pool_of(setting: str, seed: int) -> Pool:
    """Features, some of them with labels, all of which are right."""
    if setting == DIGITS:
        pool = open_data("digits")
        pool = apply(pool, make_split(pool, Longtail(n_max=50, gamma=20.0), seed))
        examples = pool.examples[..., 0].reshape(len(pool.examples), -1).astype(np.float32)
        return Pool(examples, pool.labels, pool.class_names, "table")
    x, truth, known = SETTINGS[setting](seed)
    names = tuple(map(str, range(int(truth.max()) + 1)))
    return Pool(x.astype(np.float32), np.where(known, truth, MISSING).astype(np.int64), names, "table")


def misled(pool: Pool, seed: int) -> tuple[Pool, NDArray[np.int64]]:
    """The pool with wrong labels, and their rows; no class loses its last label."""
    generator = np.random.default_rng(seed)
    labels = pool.labels.copy()
    rows: list[int] = []
    wanted = round(SHARE * int((labels != MISSING).sum()))
    for row in generator.permutation(np.flatnonzero(labels != MISSING)):
        if len(rows) < wanted and (labels == labels[row]).sum() > 1:
            labels[row] = (labels[row] + generator.integers(1, pool.num_classes)) % pool.num_classes
            rows.append(int(row))
    return Pool(pool.examples, labels, pool.class_names, pool.name), np.array(rows, dtype=np.int64)


def judge(job: Job) -> dict[str, Any]:
    torch.set_num_threads(1)
    setting, seed, wrong = job
    pool, rows = pool_of(setting, seed), np.empty(0, dtype=np.int64)
    if wrong:
        pool, rows = misled(pool, seed)
    target = diagnosed_target(pool).shares
    flat = (
        FLAT | {"seed": seed, "evaluations": 1, "device": "cpu"} | ({} if target is None else {"target_prior": target})
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        *_, _ = train(Config.from_dict(flat), out, pool=pool)
        seen = look(ReportedRun.read(out, "run", 0), pool, None, "cpu", 10_000)
    assert seen.around is not None
    assert seen.on_part is not None
    assert seen.rows_of_part is not None
    trained = np.isin(seen.labelled, rows)
    by_model = seen.on_labelled.argmax(1) != seen.pool.labels[seen.labelled]
    doubted = by_model | seen.around.doubtful
    held, contradicted = np.isin(seen.rows_of_part, rows), seen.on_part.argmax(1) != seen.pool.test_labels
    counts = {
        "trained": trained.size, "trained_wrong": trained.sum(),
        "found": (doubted & trained).sum(), "false": (doubted & ~trained).sum(),
        "found_by_prediction": (by_model & trained).sum(), "false_by_prediction": (by_model & ~trained).sum(),
        "held_out": held.size, "held_out_wrong": held.sum(),
        "held_out_found": (contradicted & held).sum(), "held_out_false": (contradicted & ~held).sum(),
    }  # fmt: skip
    return {"setting": setting, "seed": seed, "wrong": wrong, **{name: int(count) for name, count in counts.items()}}


def build(records: list[dict[str, Any]]) -> str:
    lines = []
    for setting in [*dict.fromkeys(r["setting"] for r in records), None]:
        these = [r for r in records if setting in (r["setting"], None)]
        bad, good = ([r for r in these if r["wrong"] is wrong] for wrong in (True, False))

        def of(part: str, whole: str, runs: list[dict[str, Any]], but: str = "") -> str:
            number = sum(r[whole] - (r[but] if but else 0) for r in runs)
            return f"{sum(r[part] for r in runs)} of {number}"

        lines.append([
            "together" if setting is None else setting,
            of("found", "trained_wrong", bad),
            of("found_by_prediction", "trained_wrong", bad),
            of("false", "trained", bad, "trained_wrong"),
            of("false", "trained", good),
            of("held_out_found", "held_out_wrong", bad),
            of("held_out_false", "held_out", bad, "held_out_wrong"),
        ])  # fmt: skip
    header = [
        "", "wrong, trained on: found", "by the prediction alone", "right, trained on: doubted", "if none is wrong",
        "wrong, held out: found", "right, held out: doubted",
    ]  # fmt: skip
    return f"Written by `python benchmarks/wrong_labels.py`.\n\n{markdown(header, lines)}\n"


def main() -> None:
    explain(__doc__)
    jobs = [(setting, seed, wrong) for setting in (*SETTINGS, DIGITS) for seed in SEEDS for wrong in (True, False)]
    with multiprocessing.get_context("spawn").Pool(2) as workers:
        records = []
        for record in workers.imap(judge, jobs):
            records.append(record)
            print(f"{len(records)} of {len(jobs)}: {record}", flush=True)
    RECORD.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    OUT.write_text(build(records), encoding="utf-8")


if __name__ == "__main__":
    main()
