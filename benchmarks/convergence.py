"""How fast a run converges on a CPU, with SGD as published and with Muon: what was tried, one change at a time.

    python benchmarks/convergence.py choose     # up to 2 seeds, on training images held out from both streams
    python benchmarks/convergence.py prove      # 10 other seeds, on the test images, what was chosen and nothing else
    python benchmarks/convergence.py spectra    # singular values of updates and weights in one run each
    … --only "digits as"                        # problems whose name begins so

What has been run is in convergence.json, and is not run again. What was expected of a trial was written down before it
was run; the sizes of Muon's step, SGD's rate and its cosine had been looked at with a seed or two by then.
`python benchmarks/convergence_page.py` makes docs/convergence.md and its figures of the record.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cadr.config import Config
from cadr.data import open_data
from cadr.data.pool import Pool
from cadr.optim import averaged_over
from cadr.training import train
from cadr.training.run_folder import read_records
from cadr.utils.files import atomic_write

RECORD = Path(__file__).with_suffix(".json")
CHOOSING = (11, 12)
PROVING = tuple(range(101, 111))
_EVALUATIONS = {"evaluations": 25, "log_every": 10, "checkpoint_seconds": 1e6, "device": "cpu"}
_CHANNELS = 16  # of the first convolution on digits
_LONGTAIL = {"protocol": "longtail", "n_max": 50, "gamma": 50.0}
PROBLEMS: dict[str, dict[str, Any]] = {
    "digits": {
        **(_EVALUATIONS | _LONGTAIL),
        **{"data": "digits", "model": "convnet", "channels": _CHANNELS, "views": "image", "flip": False, "shift": 1},
        **{"batch": 32, "ratio": 4, "lr": 0.1, "held_out": 260},
    },
    "digits as a table": {
        **(_EVALUATIONS | _LONGTAIL),
        **{"data": "digits", "model": "mlp", "views": "features", "batch": 32, "ratio": 4, "lr": 0.1},
        **{"held_out": 260},
    },
}
_FEATURES = ("digits as a table",)  # whose pixels are a row of numbers


def sgd(steps: int, **changes: Any) -> dict[str, Any]:
    """As own data had it before: an average over a fifth of the run, the rate falls to a fifth."""
    return {"steps": steps, "ema": round(1 - 5 / steps, 4)} | changes


def muon(steps: int, **changes: Any) -> dict[str, Any]:
    base = {"optimiser": "muon", "muon_lr": 0.1, "ema": averaged_over(steps)}
    return {"steps": steps} | base | changes


@dataclass(frozen=True)
class Trial:
    name: str
    expected: str  # before it was run
    settings: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ("digits",)
    algorithm: str = "cadr"


TRIED = (
    Trial("SGD, 250 steps", "where we start", sgd(250)),
    Trial(
        "SGD, rate 0.2", "no gain: 0.1 was chosen at 500 steps, and half as many want a little more", sgd(250, lr=0.2)
    ),
    Trial("SGD, cosine to zero", "no gain: it ends where it has not yet arrived", sgd(250, cosine=0.5)),
    Trial("SGD, average over a twentieth", "the same within noise", sgd(250, ema=averaged_over(250))),
    Trial("Muon 0.02, as on the large network", "ahead of SGD by a few points", muon(250, muon_lr=0.02)),
    Trial("Muon 0.05", "between 0.02 and 0.1", muon(250, muon_lr=0.05)),
    Trial("Muon 0.1", "best: few steps want long ones", muon(250)),
    Trial("Muon 0.2", "too long: worse than 0.1", muon(250, muon_lr=0.2)),
    Trial("Muon 0.1, decay 0", "the same: rate × decay × steps is below 1", muon(250, muon_decay=0.0)),
    Trial("Muon 0.1, decay 0.2", "the same or a little better", muon(250, muon_decay=0.2)),
    Trial(
        "Muon 0.1, momentum 0.9",
        "the same or better: the average of 20 steps is long in 250",
        muon(250, muon_momentum=0.9),
    ),
    Trial("Muon 0.1, average over a fifth", "a little worse: it lags behind", muon(250, ema=0.98)),
    Trial("Muon 0.1, rate falls to a fifth", "a little worse: it ends in motion", muon(250, cosine=7 / 16)),
    Trial("Muon 0.1, the other layers' rate 0.05", "a little worse: head and stem are late", muon(250, lr=0.05)),
    Trial("Muon 0.1, the other layers' rate 0.2", "the same", muon(250, lr=0.2)),
    Trial(
        "Muon 0.1, 64 labelled a step", "the same: labels are learned by heart either way", muon(250, batch=64, ratio=2)
    ),
    Trial("Muon 0.1, ratio 2, twice the steps", "ahead: more steps for as many images", muon(500, ratio=2)),
)
CHOSEN = tuple(
    Trial(f"{name}, {steps} steps", "", how(steps), problems=("digits", "digits as a table"))
    for steps in (250, 500)
    for name, how in (("SGD", sgd), ("Muon", muon))
)


def key(stage: str, problem: str, trial: Trial, seed: int) -> str:
    return f"{stage} | {problem} | {trial.algorithm} | {trial.name} | {seed}"


def planned(stage: str, only: str) -> Iterator[tuple[str, str, Trial, int]]:
    """Seed after seed: what has been run so far is always a comparison."""
    trials, seeds = (TRIED, CHOOSING) if stage == "choose" else (CHOSEN, PROVING)
    problems = list(dict.fromkeys(problem for trial in trials for problem in trial.problems))
    for problem in problems:
        for seed in seeds:
            for trial in trials:
                if problem in trial.problems and problem.startswith(only):
                    yield key(stage, problem, trial, seed), problem, trial, seed


def pool_of(problem: str) -> Pool:
    pool = open_data(PROBLEMS[problem]["data"])
    if problem not in _FEATURES:
        return pool
    assert pool.test_examples is not None
    parts = [part[..., 0].reshape(len(part), -1).astype("float32") for part in (pool.examples, pool.test_examples)]
    return Pool(parts[0], pool.labels, pool.class_names, "digits", test_examples=parts[1], test_labels=pool.test_labels)


def config(problem: str, trial: Trial, seed: int, stage: str) -> Config:
    flat = PROBLEMS[problem] | trial.settings | {"algorithm": trial.algorithm, "seed": seed}
    return Config.from_dict(flat | ({} if stage == "choose" else {"held_out": 0}))


def run(problem: str, trial: Trial, seed: int, stage: str, pool: Pool) -> dict[str, Any]:
    settings = config(problem, trial, seed, stage)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        begun = time.process_time()
        *_, last = train(settings, out, pool)
        seconds = time.process_time() - begun
        records = list(read_records(out / "metrics.jsonl"))
    judged = [r for r in records if r["kind"] == "evaluation"]
    learned = [r for r in records if r["kind"] == "train"]
    return {
        "accuracy": last["result"]["last"],
        "gm": last["result"]["gm"],
        "seconds": round(seconds, 2),
        "curve": [[r["step"], r["accuracy"]] for r in judged],
        "rarest": [[r["step"], r["recall"][-1]] for r in judged],
        "used": [[r["step"], r["mask"]] for r in learned],
    }


def spectra(pool: Pool) -> dict[str, Any]:
    """Singular values of the middle kernel and of what one step does to it, at ten points of a run with each.

    They are given as shares of the largest.
    """
    from cadr.data.split import apply, make_split
    from cadr.training.feed import Inputs
    from cadr.training.plan import input_shape
    from cadr.training.prepare import build_model
    from cadr.training.step import Step

    found: dict[str, Any] = {}
    for name, how in (("SGD", sgd(250)), ("Muon", muon(250))):
        made = config("digits", Trial(name, "", how), 101, "prove")
        seen = apply(pool, make_split(pool, made.protocol, 101, 0))
        inputs = Inputs.of(seen, torch.device("cpu"))
        model = build_model(made, seen.num_classes, input_shape(seen))
        step = Step(model, made.algorithm, made.views, inputs, made.optimiser, made.training, 25)
        place = next(n for n, p in enumerate(step.state.parameters) if p.ndim == 4 and p.shape[1] == 2 * _CHANNELS)
        lines = found[name] = []
        for _ in range(10):
            step.advance(24)
            before = step.state.parameters[place].detach().clone()
            step.advance(1)
            after = step.state.parameters[place].detach()
            lines.append([step.done, shares(after - before), shares(after)])
    return found


def shares(kernel: Tensor) -> list[float]:
    values = torch.linalg.svdvals(kernel.flatten(1).double())
    return [round(float(value), 5) for value in values / values.max()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("choose", "prove", "spectra"))
    parser.add_argument("--only", default="", metavar="WORDS")
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    record = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"runs": {}}
    if arguments.stage == "spectra":
        record["spectra"] = spectra(pool_of("digits"))
        _write(record, arguments.out)
        return
    pools: dict[str, Pool] = {}
    for name, problem, trial, seed in planned(arguments.stage, arguments.only):
        if name in record["runs"]:
            continue
        if problem not in pools:
            pools = {problem: pool_of(problem)}
        record["runs"][name] = run(problem, trial, seed, arguments.stage, pools[problem])
        found = record["runs"][name]
        print(f"{name}: {found['accuracy']:.1f} % / {found['gm']:.1f} %, {found['seconds']:.0f} s", flush=True)
        _write(record, arguments.out)


def _write(record: dict[str, Any], path: Path) -> None:
    runs = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in record["runs"].items())
    rest = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in record.items() if k != "runs"]
    with atomic_write(path) as new:
        new.write_text("{\n" + ",\n".join([*rest, f' "runs": {{\n{runs}\n }}']) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
