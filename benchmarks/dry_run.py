"""Whether the runs of a plan can begin, without the hours: two tiny steps of every row and change, on the CPU."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.cli.main import parser
from cadr.cli.run_flags import read_flat
from cadr.config import Config
from cadr.data import open_data
from cadr.data.pool import Pool
from cadr.errors import CadrError
from cadr.training import train
from cadr.training.plan import plan

if TYPE_CHECKING:
    from benchmarks.reproduce import Job

JUDGED = 10  # test images
TINY = {"steps": 2, "batch": 2, "ratio": 1, "evaluations": 1, "device": "cpu"}
_SMALL = {"wrn-28-2": {"width": 1}, "wrn-28-8": {"width": 1}, "wrn-37-2": {"width": 1}}


def dry_run(jobs: Sequence[Job]) -> int:
    """1 if one failed. Seeds and lengths of a run are tried once."""
    tried = {(job.row, *map(str, sorted(job.overrides.items()))): job for job in reversed(jobs)}
    failed, pools = 0, dict[str, Pool]()
    for job in reversed(tried.values()):
        try:
            last = _run(job, pools)
            print(f"{job.name}: runs, {last}", flush=True)
        except (CadrError, SystemExit) as error:
            failed = 1
            print(f"{job.name}: {error}", file=sys.stderr, flush=True)
    return failed


def _run(job: Job, pools: dict[str, Pool]) -> str:
    """Through the command line's own parser and plan, as `reproduce.py run` does it."""
    arguments = job.command(Path("nowhere"))[3:]  # without python -m cadr
    flat = read_flat(parser("train").parse_args(arguments)) | TINY
    flat |= _SMALL.get(flat["model"], {})
    data = flat["data"]
    if data not in pools:
        pools.clear()  # one at a time is large enough
        whole = open_data(data, root=flat.get("root"))
        assert whole.test_examples is not None
        assert whole.test_labels is not None
        pools[data] = dataclasses.replace(
            whole, test_examples=whole.test_examples[:JUDGED], test_labels=whole.test_labels[:JUDGED]
        )
    settled: Config = plan(flat, pools[data], recipe=True).config
    with tempfile.TemporaryDirectory() as folder:
        *_, last = train(settled, Path(folder) / "run", pools[data])
    return str(last["message"])
