"""All methods on handwritten digits: six ways of losing labels, five seeds, accuracy and geometric mean.

    python benchmarks/rivals.py                      runs what is missing, writes rivals.json and RESULTS.md
    python benchmarks/rivals.py --methods prg cadr   only rows of these names; what the file says of others stays
    python benchmarks/rivals.py --cost               only times a step of each method, beside FixMatch's

Every run is a folder under runs/rivals/, so a stopped benchmark goes on where it was. All methods have the same
network, views, steps and learning rate; CReST has as many steps in each of its six generations. Options that are not
the published ones are listed with their rows, and are there because the run is short: averages over a thousand steps
would not leave their start in two hundred.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cadr.algorithms import ALGORITHMS
from cadr.cli.runs import Job, finish
from cadr.config import Config
from cadr.data import open_data
from cadr.data.split import apply, make_split
from cadr.training.auxiliary_head import widen
from cadr.training.feed import Inputs
from cadr.training.phases import step_phases
from cadr.training.plan import input_shape
from cadr.training.prepare import build_model
from cadr.training.step import Step

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "benchmarks" / "rivals.json"
SEEDS = (101, 102, 103, 104, 105)  # no default, here or in the package, was chosen on these
SHARED: dict[str, Any] = {
    **{
        "data": "digits",
        "model": "mlp",
        "views": "image",
        "flip": False,
        "shift": 1,
        "operations": 1,
        "batch": 32,
        "ratio": 4,
    },
    **{"steps": 200, "lr": 0.1, "ema": 0.98, "evaluations": 50, "log_every": 100, "checkpoint_seconds": 600.0},
}
REVERSED = "digits-reversed.npz"  # class c is the digit 9 − c: it is then the nines that have most labels
SETTINGS: dict[str, dict[str, Any]] = {
    "γ = 20": {"protocol": "longtail", "n_max": 20, "gamma": 20.0},
    "γ = 50": {"protocol": "longtail", "n_max": 50, "gamma": 50.0},
    "γ = 20, reversed": {"data": REVERSED, "protocol": "longtail", "n_max": 20, "gamma": 20.0},
    "γ = 50, reversed": {"data": REVERSED, "protocol": "longtail", "n_max": 50, "gamma": 50.0},
    "γ = 50, γ_u = 1/10": {"protocol": "longtail", "n_max": 50, "gamma": 50.0, "gamma_unlabelled": 0.1},
    "MCAR, 100 labels": {"protocol": "mcar", "n": 100},
}
_SHORT = {"momentum": 0.99}
_GENERATIONS = {"steps": 6 * SHARED["steps"], "evaluations": 6 * SHARED["evaluations"]}  # each starts afresh


@dataclass(frozen=True)
class Row:
    algorithm: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        changed = "".join(f"-{key}-{value}" for key, value in self.options.items())
        return f"{self.algorithm}{changed}".replace("_", "-")


ROWS = (
    Row("supervised", "labelled rows alone"),
    Row("pi_model", "Π-model"),
    Row("mixmatch", "MixMatch"),
    Row("remixmatch", "ReMixMatch"),
    Row("fixmatch", "FixMatch"),
    Row("alignment", "+ alignment to uniform"),
    Row("crest", "+ CReST", _GENERATIONS),
    Row("crest_plus", "+ CReST+", _GENERATIONS),
    Row("darp", "+ DARP, the labels' counts"),
    Row("darp", "+ DARP, equal counts", {"target": "uniform"}),
    Row("darp", "+ DARP, estimated counts", {"target": "estimated"}),
    Row("reweighting", "+ re-weighting"),
    Row("resampling", "+ re-sampling"),
    Row("logit_adjustment", "+ LA loss"),
    Row("dash", "+ DASH"),
    Row("prg", "+ PRG"),
    Row("prg_last", "+ PRG (last)"),
    Row("flexmatch", "FlexMatch"),
    Row("freematch", "FreeMatch", _SHORT),
    Row("softmatch", "SoftMatch", _SHORT),
    Row("simpro", "SimPro"),
    Row("simpro", "SimPro, milder", {"tau": 1.0}),
    Row("cap", "+ CAP"),
    Row("cai", "+ CAI"),
    Row("cap_cai", "+ CAP + CAI"),
    Row("cadr", "+ CADR"),
    Row("cadr", "+ CADR, β = 1", {"beta": 1.0}),
    Row("cadr_reweighting", "+ CADR, re-weighted"),
    Row("cadr_resampling", "+ CADR, re-sampled"),
    Row("cadr_logit_adjustment", "+ CADR, LA loss"),
    Row("anchoring", "+ anchoring"),
    Row("cap_cai_anchoring", "+ CAP + CAI, anchored"),
    Row("cadr_anchoring", "+ CADR, anchored"),
    Row("cap_freematch", "+ CAP + FreeMatch"),
    Row("cap_freematch_resampling", "+ CAP + FreeMatch, re-sampled"),
)


def config(row: Row, setting: str, seed: int, runs: Path, **more: Any) -> Config:
    flat = SHARED | SETTINGS[setting] | row.options | {"algorithm": row.algorithm, "seed": seed} | more
    if flat["data"] == REVERSED:
        flat["data"] = str(runs / REVERSED)
    return Config.from_dict(flat)


def write_reversed(runs: Path) -> None:
    runs.mkdir(parents=True, exist_ok=True)
    pool = open_data("digits")
    assert pool.test_labels is not None
    arrays = {"x": pool.examples, "y": 9 - pool.labels, "x_test": pool.test_examples, "y_test": 9 - pool.test_labels}
    np.savez(runs / REVERSED, **arrays)  # type: ignore[arg-type]


def jobs(rows: Sequence[Row], runs: Path) -> list[tuple[str, Row, Job]]:
    """Seed after seed: what has been run so far is always a comparison."""
    return [
        (setting, row, Job(config(row, setting, seed, runs), runs / f"{number}-{row.name}-seed{seed}"))
        for seed in SEEDS
        for number, setting in enumerate(SETTINGS)
        for row in rows
    ]


def collect(planned: Sequence[tuple[str, Row, Job]]) -> dict[str, Any]:
    """Setting -> row -> what its finished runs say, one figure a seed."""
    cells: dict[str, Any] = {}
    for setting, row, job in planned:
        path = job.out / "result.json"
        if path.exists():
            result = json.loads(path.read_text(encoding="utf-8"))
            cell = cells.setdefault(setting, {}).setdefault(
                row.label, {"seed": [], "accuracy": [], "gm": [], "seconds": []}
            )
            for key, value in (("seed", "seed"), ("accuracy", "median_10"), ("gm", "gm"), ("seconds", "seconds")):
                cell[key].append(result[value])
    return cells


def recorded(record: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """The cells of an earlier record, as far as its runs were of today's settings: their folders may be gone."""
    if record.get("shared") != SHARED or record.get("settings") != SETTINGS:
        return {}
    options = {row.label: {"algorithm": row.algorithm, "options": row.options} for row in rows}
    same = {label for label, about in record["rows"].items() if options.get(label) == about}
    return {
        setting: {label: cell for label, cell in cells.items() if label in same}
        for setting, cells in record["cells"].items()
    }


def cost(rows: Sequence[Row], steps: int = 10, rounds: int = 15) -> dict[str, dict[str, float]]:
    """Of each method, a step's milliseconds of processor time (in turn; the median of the rounds, the first left out)
    and how many examples it passes through the network."""
    torch.set_num_threads(1)
    setting = next(iter(SETTINGS))
    pool = open_data("digits")
    running: dict[str, Step] = {}
    for row in rows:
        made = config(row, setting, SEEDS[0], ROOT, steps=steps * (rounds + 1))
        seen = apply(pool, make_split(pool, made.protocol, SEEDS[0], 0))
        inputs = Inputs.of(seen, torch.device("cpu"))
        model = build_model(made, seen.num_classes, input_shape(seen))
        widen(model, seen.num_classes, made.algorithm.auxiliary, SEEDS[0])
        parts = (model, made.algorithm, made.views, inputs, made.optimiser, made.training, steps)
        phases = step_phases(made.algorithm, made.views, made.training.steps)
        running[row.label] = Step(*parts, phases=phases)
    passed = {label: examples_passed(step) for label, step in running.items()}
    spent: dict[str, list[float]] = {label: [] for label in running}
    for _ in range(rounds + 1):
        for label, step in running.items():
            clock = time.process_time()
            step.advance(steps)
            spent[label].append(1000 * (time.process_time() - clock) / steps)
    ms = {label: round(statistics.median(times[1:]), 3) for label, times in spent.items()}
    return {"ms_per_step": ms, "examples_per_step": passed}


def examples_passed(step: Step) -> float:
    """Through the network in one step, which is taken."""
    count = 0

    def add(_model: object, inputs: tuple[torch.Tensor, ...]) -> None:
        nonlocal count
        count += len(inputs[0])

    handle = step.state.model.register_forward_pre_hook(add)
    step.advance(1)
    handle.remove()
    return count


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="algorithms to run (default: all)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "rivals", metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FILE")
    parser.add_argument("--cost", action="store_true", help="only time a step of each method")
    arguments = parser.parse_args(argv)
    known = [row for row in ROWS if row.algorithm in ALGORITHMS]
    rows = [row for row in known if not arguments.methods or row.algorithm in arguments.methods]
    record = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
    if not arguments.cost:
        write_reversed(arguments.runs)
        planned = [job for _, _, job in jobs(rows, arguments.runs)]
        ready = sum((job.out / "result.json").exists() for job in planned)
        clock, before = time.monotonic(), recorded(record, known)
        try:
            finish(planned, arguments.processes)
        finally:
            found = collect(jobs(known, arguments.runs))
            record |= {
                "shared": SHARED,
                "settings": SETTINGS,
                "rows": {row.label: {"algorithm": row.algorithm, "options": row.options} for row in known},
                "processor": platform.processor() or platform.machine(),
                "torch": torch.__version__,
                "command": {
                    "runs": len(planned) - ready,
                    "minutes": round((time.monotonic() - clock) / 60, 1),
                    "processes": arguments.processes,
                },
                "cells": {setting: before.get(setting, {}) | found.get(setting, {}) for setting in SETTINGS},
            }
            _write(record, arguments.out)
    if arguments.cost or not arguments.methods:
        record |= cost(known)
        _write(record, arguments.out)
    if arguments.out == OUT:
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / "results.py")], check=True)
    return 0


def _write(record: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path}: {sum(len(c['seed']) for row in record.get('cells', {}).values() for c in row.values())} runs")


if __name__ == "__main__":
    sys.exit(main())
