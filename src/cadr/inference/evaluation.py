"""Evaluate a run's averaged model again, from what its folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from cadr.data.pool import Pool
from cadr.errors import CheckpointError, DataError
from cadr.inference.trained_weights import trained
from cadr.training.device_data import Inputs
from cadr.training.network import evaluate, is_half
from cadr.training.prepare import Prepared, check_same_data, restore
from cadr.training.run_folder import RunFolder
from cadr.training.schedule import scores


def evaluate_run(
    out: Path | str, pool: Pool | None = None, model: nn.Module | None = None, device: str = "auto"
) -> dict[str, Any]:
    """Accuracy, geometric mean, recall and confusion of the run in folder `out`, finished or not."""
    return judge(out, pool, model, device)[0]


def judge(out: Path | str, pool: Pool | None, model: nn.Module | None, device: str) -> tuple[dict[str, Any], Prepared]:
    """The same, and the run that was judged, with its averaged model."""
    folder = RunFolder.there(out)
    tensors, facts = trained(folder, "evaluate")
    prepared = restore(folder, pool, model, device)
    check_same_data(folder, prepared.pool, facts)
    inputs = Inputs.of(prepared.pool, prepared.device)
    if inputs.test_examples is None:
        raise DataError(f"{prepared.pool.name} has no test set, so there is nothing to evaluate on.")
    half = is_half(prepared.config.training.precision, prepared.device)
    network = averaged(prepared, tensors)
    found = {
        "dataset": prepared.pool.name,
        "step": int(tensors["step"]),
        "steps": prepared.config.training.steps,
        "on": prepared.judged_on,
        "examples": len(inputs.test_examples),
        "class_names": list(prepared.pool.class_names),
        **scores(evaluate(network, inputs, half)),
    }
    return found, prepared


def averaged(prepared: Prepared, tensors: dict[str, Any]) -> nn.Module:
    """The model with the averaged weights and the running statistics of a checkpoint."""
    state = prepared.model.state_dict()
    for kind in ("average.", "buffer."):
        state |= {name.removeprefix(kind): value for name, value in tensors.items() if name.startswith(kind)}
    try:
        prepared.model.load_state_dict(state)
    except RuntimeError:
        raise CheckpointError("The checkpoint is of another model than the one given.") from None
    return prepared.model.to(prepared.device).eval()
