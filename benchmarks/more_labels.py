"""What a few more labels are worth: of any examples, of those the model is least sure of, of those on a report's page.

    python benchmarks/more_labels.py        # writes more_labels.json and more_labels.md, minutes on two cores

Digits, 50 labels of the commonest class and one of the rarest. CADR is trained, so many labels are added, and it is
trained again from the start. Seeds are fresh: nothing was chosen on them.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import statistics
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
from benchmarks.rivals import SETTINGS, SHARED  # noqa: E402

from cadr.config import Config  # noqa: E402
from cadr.data import open_data  # noqa: E402
from cadr.data.pool import Pool  # noqa: E402
from cadr.data.split import apply, make_split  # noqa: E402
from cadr.report.examples import variance_removed  # noqa: E402
from cadr.report.labels import labels_of  # noqa: E402
from cadr.report.model_outputs import Look, look  # noqa: E402
from cadr.report.query import least_sure  # noqa: E402
from cadr.report.runs import ReportedRun  # noqa: E402
from cadr.training import train  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
OUT = RECORD.with_suffix(".md")
SEEDS = range(401, 413)
ADDED = (10, 30)
WAYS = ("any", "least sure", "on the page")
SETTING = SHARED | SETTINGS["γ = 50"] | {"algorithm": "cadr", "evaluations": 10}


def chosen(seen: Look, run: ReportedRun, way: str, count: int) -> NDArray[np.int64]:
    """Rows to label."""
    if way == "any":
        return np.random.default_rng(run.config.training.seed).permutation(seen.unlabelled)[:count]
    if way == "least sure":
        return np.asarray(seen.unlabelled[least_sure(seen.on_unlabelled)[:count]])
    removed = variance_removed(seen.on_unlabelled, labels_of(seen, [run], "").propensity)
    return np.asarray(seen.unlabelled[np.argsort(-removed, kind="stable")[:count]])


def fit(pool: Pool, seed: int, out: Path) -> dict[str, float]:
    own = {key: value for key, value in SETTING.items() if key not in ("protocol", "n_max", "gamma")}
    *_, last = train(Config.from_dict(own | {"seed": seed}), out, pool=pool)
    return {"accuracy": last["result"]["last"], "gm": last["result"]["gm"]}


def of_seed(seed: int) -> dict[str, dict[str, float]]:
    torch.set_num_threads(1)
    digits = open_data("digits")
    protocol = Config.from_dict(SETTING | {"seed": seed}).protocol
    assert protocol is not None
    pool = dataclasses.replace(apply(digits, make_split(digits, protocol, seed, 0)), hidden_labels=None)
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first"
        found = {"none": fit(pool, seed, first)}
        run = ReportedRun.read(first, "first", 0)
        seen = look(run, pool, None, "cpu", len(pool.labels))
        for way in WAYS:
            for count in ADDED:
                labels, rows = np.array(pool.labels), chosen(seen, run, way, count)
                labels[rows] = digits.labels[rows]
                more = dataclasses.replace(pool, labels=labels)
                found[f"{way}, {count}"] = fit(more, seed, Path(folder) / f"{way}-{count}")
    return found


def build(record: dict[str, Any]) -> str:
    def cell(name: str) -> str:
        of = [[one[name][what] for one in record["seeds"].values()] for what in ("accuracy", "gm")]
        return f"{statistics.mean(of[0]):.1f} ± {statistics.stdev(of[0]):.1f} / {statistics.mean(of[1]):.1f}"

    lines = [["none added", *[cell("none")] * len(ADDED)]]
    lines += [[way, *(cell(f"{way}, {count}") for count in ADDED)] for way in WAYS]
    what = (
        f"Accuracy / geometric mean (%) after so many labels were added, mean ± standard deviation over "
        f"{len(record['seeds'])} seeds. Written by `python benchmarks/more_labels.py`."
    )
    return f"{what}\n\n{markdown(['', *(f'{count} labels' for count in ADDED)], lines)}\n"


def main() -> None:
    explain(__doc__)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(of_seed, SEEDS, chunksize=1)
    record = {"setting": SETTING, "seeds": {str(seed): one for seed, one in zip(SEEDS, found, strict=True)}}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    OUT.write_text(build(record), encoding="utf-8")
    print(OUT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
