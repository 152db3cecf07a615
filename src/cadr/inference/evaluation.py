"""What a run comes to: on its test set or held-out labels, and on all rows, of which labels are a biased part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from cadr.config import Config
from cadr.data.pool import Pool
from cadr.data.unlabelled import spread, unlabelled
from cadr.diagnosis.contradictions import Outside, classes_outside, outside
from cadr.diagnosis.result import Diagnosis
from cadr.errors import CadrError, CheckpointError, DataError
from cadr.inference.predictor import Predictor, trained
from cadr.training.accuracy_notes import over_classes, weighted_accuracy
from cadr.training.device_data import Inputs
from cadr.training.network import evaluate, is_half
from cadr.training.plan import is_own, open_source
from cadr.training.prepare import Prepared, check_same_data, restore
from cadr.training.record import Record
from cadr.training.run_folder import RunFolder
from cadr.training.schedule import scores
from cadr.training.target import diagnosed_target
from cadr.utils.memory import kept_from_the_second

ROWS = 100_000  # unlabelled ones that are predicted, at most
_AT_ONCE = 1_000  # in memory, of a mapped file


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


@dataclass(frozen=True, eq=False)
class UserLabels:
    """Data whose labels are missing as they are, and what a diagnosis says of them."""

    pool: Pool
    diagnosis: Diagnosis

    @staticmethod
    def of(config: Config, pool: Pool | None = None, diagnosis: Diagnosis | None = None) -> UserLabels | None:
        """None of a benchmark, nor where nothing can be diagnosed: a protocol takes labels from data that have all.

        Nor are there any of data that are gone. `pool` and `diagnosis` are given where they are there already.
        """
        if not is_own(config):
            return None
        if pool is None:
            try:
                pool = open_source(config)
            except (CadrError, OSError):
                return None
        diagnosis = diagnosis or diagnosed_target(pool).diagnosis
        return None if diagnosis is None or diagnosis.weak else UserLabels(pool, diagnosis)

    def weighted(self, evaluation: Record) -> float | None:
        return weighted(evaluation, [c.propensity for c in self.diagnosis.classes])

    def outside(self, predictor: Predictor) -> list[Outside]:
        """Classes whose predicted shares the diagnosis contradicts."""
        return classes_outside(self.diagnosis, self._shares(predictor))

    def words(self, predictor: Predictor, evaluation: Record | None) -> list[str]:
        """A sentence each on accuracy on all rows and on predicted shares, where there is something to say."""
        accuracy = None if evaluation is None else self.weighted(evaluation)
        said = [] if accuracy is None or evaluation is None else [weighted_in_words(evaluation, accuracy)]
        contradicted = outside(self.diagnosis, self._shares(predictor))
        return [*said, f"Warning: {contradicted}"] if contradicted else said

    def _shares(self, predictor: Predictor) -> list[float]:
        """Of the unlabelled rows, by class, as `cadr predict` names them."""
        rows = spread(unlabelled(self.pool), ROWS)
        counts = np.zeros(len(self.diagnosis.classes), dtype=np.int64)
        with kept_from_the_second(range(0, len(rows), _AT_ONCE)) as starts:
            for start in starts:
                found = predictor.probabilities(self.pool.examples[rows[start : start + _AT_ONCE]]).argmax(1)
                counts += np.bincount(found.cpu().numpy(), minlength=len(counts))
        return [float(count) / len(rows) for count in counts]


def weighted(evaluation: Record, propensity: Sequence[float | None]) -> float | None:
    """Accuracy where a label held out counts 1/propensity, in percent; None if it was not judged on such labels.

    A class with a single label has no propensity, and none that is held out.
    """
    if evaluation["on"] != "validation":
        return None
    return weighted_accuracy(evaluation["confusion"], [1.0 if phi is None else phi for phi in propensity])


def weighted_in_words(evaluation: Record, accuracy: float, of: str = "") -> str:
    return (
        f"Weighted by 1/propensity, so that {over_classes(evaluation['recall'])} count as in all rows, accuracy"
        f"{of and f' of {of}'} is {accuracy:.1f} %."
    )
