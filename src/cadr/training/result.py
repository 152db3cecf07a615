"""What a run says as it starts, and what it came to: result.json, flat, with the fields of a benchmark's record."""

from __future__ import annotations

import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

import torch

import cadr
from cadr.config import Config, name_of, options_of
from cadr.data.split import Split
from cadr.errors import CheckpointError
from cadr.training.feed import Inputs
from cadr.training.prepare import Prepared
from cadr.training.record import Record
from cadr.training.step import Step
from cadr.training.streamed import Streamed
from cadr.utils import ranks
from cadr.utils.text import counted
from cadr.utils.untrusted import parse_json, read_text


def started(prepared: Prepared, inputs: Inputs, step: Step, problems: list[str]) -> Record:
    """The first record; `problems` are what was found of the run and had to be mended."""
    pool, steps, done = prepared.pool, prepared.config.training.steps, step.done
    words = [*problems, f"Continuing at step {done} of {steps}" if done else f"Training for {steps} steps"]
    by = f" by {ranks.world()} ranks" if ranks.world() > 1 else ""
    words[-1] += (
        f" on {step.device}{by}: {pool.num_labelled} labelled and {pool.num_unlabelled} unlabelled examples of "
        f"{pool.num_classes} classes."
    )
    if isinstance(inputs.examples, Streamed):
        size = pool.examples.nbytes / 2**30
        words.append(f"The examples, {size:.1f} GiB, do not fit there and are read from their file as steps need them.")
    if pool.num_unlabelled == 0:
        words.append("No label is missing: a protocol would leave some out.")
    if prepared.validation is not None:
        held = counted(len(prepared.validation), "more label")
        words.append(f"It holds out {held} to evaluate and calibrate on.")
    elif inputs.test_examples is None:
        words.append("There is no test set: nothing will be evaluated.")
    return {
        "kind": "start",
        "step": done,
        "steps": steps,
        "resumed": done,
        "device": str(step.device),
        "parameters": sum(p.numel() for p in step.state.parameters),
        "message": " ".join(words),
    }


def result(out: Path | str) -> dict[str, Any]:
    """The result of the finished run in folder `out`."""
    path = Path(out) / "result.json"
    try:
        content = parse_json(read_text(path))
    except FileNotFoundError:
        raise CheckpointError(f"{out} holds no finished run: {path} does not exist; continue it first.") from None
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be read ({error}); delete it and continue the run.") from None
    return dict(content)


def quoted(scores: dict[str, Any], is_benchmark: bool) -> float | None:
    """The accuracy to quote, out of a `summary`; None where nothing was evaluated.

    Methods are compared on benchmarks by the median of the last ten evaluations, which depends less on luck. On
    anything else the last one counts: it is of the model that predicts, and what stands beside it (recalls, the
    geometric mean, the confusion matrix) is of that model too.
    """
    accuracy: float | None = scores["median_10" if is_benchmark else "last"]
    return accuracy


def quoted_of(result: dict[str, Any]) -> float | None:
    """The same of a finished run. Labels that are missing by a protocol, or as a split says, make a benchmark."""
    return quoted(result, result["split_sha256"] is not None)


def summary(evaluations: list[Record]) -> dict[str, Any]:
    """The curve and what may be quoted of it."""
    curve = [[record["step"], record["accuracy"]] for record in evaluations]
    values = [value for _, value in curve]
    if not values:
        names = ("last", "mean_10", "median_10", "median_20", "best", "gm", "recall")
        return {"evaluated_on": None, "curve": [], **dict.fromkeys(names)}
    return {
        "evaluated_on": evaluations[-1]["on"],
        "curve": curve,
        "last": values[-1],
        "mean_10": round(statistics.fmean(values[-10:]), 4),
        "median_10": round(statistics.median(values[-10:]), 4),
        "median_20": round(statistics.median(values[-20:]), 4),
        "best": max(values),
        "gm": evaluations[-1]["gm"],
        "recall": evaluations[-1]["recall"],
    }


def describe_run(config: Config, dataset: str, model_name: str, split: Split | None) -> dict[str, Any]:
    """What was run, on what, with what. A split file says its protocol where the configuration has none."""
    parameters = {} if split is None else split.parameters
    return {
        "dataset": dataset,
        "algorithm": name_of(config.algorithm),
        "options": options_of(config.algorithm) | ({"renaming": True} if config.training.renaming else {}),
        **{name: parameters.get(name) for name in ("gamma", "n_max", "gamma_unlabelled")},
        "model": model_name,
        "steps": config.training.steps,
        "seed": config.training.seed,
        "split_sha256": None if split is None else split.sha256,
        "commit": commit(),
        "torch": torch.__version__,
    }


def commit() -> str | None:
    """The commit of the sources that run, with "-dirty" if they were changed; CADR_COMMIT where there is no git."""
    package = Path(cadr.__file__).resolve().parent
    command = ["git", "-C", str(package), "rev-parse", "--show-toplevel"]
    try:
        top = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
        if Path(top) / "src" / "cadr" == package:  # not somebody else's repository around an installed package
            command[3:] = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        pass
    return os.environ.get("CADR_COMMIT")
