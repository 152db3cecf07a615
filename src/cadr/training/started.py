"""What a run says as it starts."""

from __future__ import annotations

from cadr.training.device_data import Inputs
from cadr.training.prepare import Prepared
from cadr.training.record import Record
from cadr.training.step import Step
from cadr.utils.text import counted


def started(prepared: Prepared, inputs: Inputs, step: Step, problems: list[str]) -> Record:
    """The first record; `problems` are what was found of the run and had to be mended."""
    pool, steps, done = prepared.pool, prepared.config.training.steps, step.done
    words = [*problems, f"Continuing at step {done} of {steps}" if done else f"Training for {steps} steps"]
    words[-1] += (
        f" on {step.device}: {pool.num_labelled} labelled and {pool.num_unlabelled} unlabelled examples of "
        f"{pool.num_classes} classes."
    )
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
        "parameters": sum(p.numel() for p in step.parameters),
        "message": " ".join(words),
    }
