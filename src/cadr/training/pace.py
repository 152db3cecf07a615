"""How many steps go into so many minutes, here and now: the run is set up, and a few steps and an evaluation are timed.

What is timed is thrown away, and the run begins afresh, with that number of steps.
"""

from __future__ import annotations

import copy
import math
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from cadr.config import Config
from cadr.data.pool import Pool
from cadr.errors import ConfigError
from cadr.training.feed import Inputs
from cadr.training.network import evaluate
from cadr.training.phases import step_phases
from cadr.training.prepare import prepare
from cadr.training.run_folder import RunFolder
from cadr.training.step import Step
from cadr.training.threads import operations, threads_for
from cadr.utils.memory import freed_memory_kept
from cadr.utils.text import duration

_TIMED = 0.03  # of the minutes
_JUDGING = 0.1  # of the minutes
_SPARE = 0.03  # of the minutes: checkpoints, logs, and what else the machine does


class Pace(NamedTuple):
    minutes: float
    steps: int
    evaluations: int
    ms_per_step: float

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is given, and what was found for what is not."""
        return {"steps": self.steps, "evaluations": self.evaluations} | dict(given)

    def sentence(self) -> str:
        return (
            f"Chosen for {self.minutes:g} minutes: --steps {self.steps} --evaluations {self.evaluations}, as a step "
            f"takes {self.ms_per_step:.3g} ms here."
        )


def measured(config: Config, given: Mapping[str, Any], pool: Pool, model: nn.Module | None, began: float) -> Pace:
    """The pace of this run, of whose minutes some have gone since `began`, by the monotonic clock.

    Where nobody has given a number of evaluations, they take a tenth of the time at most.
    """
    minutes = config.training.minutes
    assert minutes is not None
    start = time.monotonic()
    with ExitStack() as inside, tempfile.TemporaryDirectory() as nowhere, freed_memory_kept():
        prepared = prepare(config, RunFolder(Path(nowhere) / "run"), pool, copy.deepcopy(model))
        inputs = Inputs.of(prepared.pool, prepared.device)
        inside.enter_context(threads_for(operations(prepared, inputs)))
        parts = (prepared.model, config.algorithm, prepared.config.views, inputs, config.optimiser)
        phases = step_phases(config.algorithm, prepared.config.views, config.training.steps)
        step = Step(*parts, config.training, longest=100, phases=phases)
        together = 50 if step.on_gpu else 3  # between two looks at the clock, for which the device is waited for
        step.advance(together)
        _wait(step.device)
        ready = time.monotonic()
        taken = 0
        while not taken or time.monotonic() - ready < 60.0 * minutes * _TIMED:
            step.advance(together)
            _wait(step.device)
            taken += together
        seconds = (time.monotonic() - ready) / taken
        evaluations = time.monotonic()
        if inputs.test_examples is not None:
            evaluate(step.state.average_model, inputs, step.half)
            _wait(step.device)
    end = time.monotonic()
    count, each = config.training.evaluations, end - evaluations
    if "evaluations" not in given and each > 0.0:
        count = max(1, min(count, int(60.0 * minutes * _JUDGING / each)))
    # The run itself is set up once more.
    left = 60.0 * minutes * (1.0 - _SPARE) - (end - began) - (ready - start) - count * each
    steps = _rounded(left / seconds)
    if steps < 1:
        raise ConfigError(
            f"minutes: {minutes:g} are too few here: setting up takes {duration(ready - start)}, {count} evaluations "
            f"{duration(count * each)}, a step {seconds:.2g} s; give more minutes."
        )
    return Pace(minutes, steps, count, round(1000.0 * seconds, 4))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _rounded(steps: float) -> int:
    """Down to two digits, so that nobody takes it for more exact than it is."""
    if steps < 1.0:
        return 0
    unit = int(10 ** max(0, int(math.log10(steps)) - 1))
    return int(steps) // unit * unit
