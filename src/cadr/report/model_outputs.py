"""What a run's model makes of its data: predictions on the test part, on the labelled rows and on unlabelled ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cadr import metrics
from cadr.data.pool import MISSING, Pool, spread, unlabelled
from cadr.estimate.aipw import class_propensity
from cadr.estimate.calibration import Calibration
from cadr.estimate.label_swap import doubtful, exchanged, fit_of_names
from cadr.inference.predictor import read_calibration, trained
from cadr.models.feature_hooks import arriving, behind_middle
from cadr.report.runs import ReportedRun
from cadr.training.ensemble_run import SavedEnsemble, trained_model
from cadr.training.feed import Inputs
from cadr.training.network import is_half, logits_of
from cadr.training.prepare import CROSS_FITTED, VALIDATION, check_same_data, restore
from cadr.training.record import Record, scores
from cadr.training.run_folder import RunFolder


class Around(NamedTuple):
    """What the middle of the network says of the labels that were trained on."""

    exchanged: list[tuple[int, int]]  # classes that seem to have swapped labels
    doubtful: NDArray[np.bool_]  # (len(labelled),)
    names: NDArray[np.float64]  # (len(labelled), C) how often each class is predicted around the example


@dataclass(frozen=True, eq=False)
class Look:
    """Probabilities of the averaged model, calibrated where the run has a calibration, and the rows they belong to."""

    step: int  # of the checkpoint
    pool: Pool  # as the learner saw it
    part: str  # what the run is judged on: test, held_out or validation
    rows_of_part: NDArray[np.int64] | None  # rows of the data, where the part was taken from them
    labelled: NDArray[np.int64]  # rows
    unlabelled: NDArray[np.int64]  # rows that were looked at
    num_unlabelled: int  # that there are
    on_labelled: NDArray[np.float64]  # (len(labelled), C)
    on_unlabelled: NDArray[np.float64]
    on_part: NDArray[np.float64] | None
    on_part_before: NDArray[np.float64] | None  # calibration
    calibration: Calibration
    propensity: NDArray[np.float64]  # (C,) labelled counts over the counts that the run's last P̂ implies
    around: Around | None = None  # where the network shows its middle

    @property
    def exchanged(self) -> Sequence[tuple[int, int]]:
        return [] if self.around is None else self.around.exchanged

    @property
    def labels(self) -> NDArray[np.int64]:
        """All labels that somebody gave, those held out for validation among them."""
        if self.rows_of_part is None or self.pool.test_labels is None:
            return self.pool.labels
        labels = self.pool.labels.copy()
        labels[self.rows_of_part] = self.pool.test_labels
        return labels

    @property
    def truth_is_known(self) -> bool:
        """Of the unlabelled stream; with labels held out, only that of labels which the model was trained on."""
        return self.pool.hidden_labels is not None and self.part not in (VALIDATION, CROSS_FITTED)

    @property
    def evaluation(self) -> Record | None:
        """What an evaluation of the checkpoint says."""
        if self.on_part_before is None or self.pool.test_labels is None:
            return None
        truth, guess = torch.tensor(self.pool.test_labels), torch.from_numpy(self.on_part_before.argmax(1))
        counts = metrics.confusion(truth, guess, self.pool.num_classes)
        return {"kind": "evaluation", "step": self.step, "on": self.part, **scores(counts)}


def look(run: ReportedRun, pool: Pool | None, model: nn.Module | None, device: str, rows: int) -> Look:
    """Open data and checkpoint again; at most `rows` unlabelled rows are looked at, evenly spread."""
    folder = RunFolder(run.path)
    tensors, facts = trained(folder, "look at")
    prepared = restore(folder, pool, model, device)
    check_same_data(folder, prepared.pool, facts)
    fitted = SavedEnsemble.of(tensors, folder.path) if prepared.judged_on == CROSS_FITTED else None
    inputs = Inputs.of(prepared.pool, prepared.device)
    half = is_half(prepared.config.training.precision, prepared.device)
    network = trained_model(prepared.config, prepared.model, tensors, folder.path).to(prepared.device).eval()
    calibration = read_calibration(folder.path, run.spec)

    labels = prepared.pool.labels
    stream = np.arange(len(labels)) if prepared.pool.stream is None else prepared.pool.stream
    labelled, without = np.flatnonzero(labels != MISSING), unlabelled(prepared.pool)
    looked_at = spread(without, rows)

    def logits(chosen: NDArray[np.int64]) -> Tensor:
        return _logits(network, inputs, inputs.examples[torch.from_numpy(chosen).to(prepared.device)], half)

    with arriving(behind_middle(network)) as features:
        of_labelled, of_unlabelled = logits(labelled), logits(looked_at)
    prior = torch.tensor(run.prior, dtype=torch.float64)
    propensity = class_propensity(
        torch.from_numpy(prepared.pool.counts).double(),
        prior,
        torch.tensor(len(stream)),
        torch.tensor(bool(np.isin(labelled, stream).all())),
    )
    pool, rows_of_part, on_part = prepared.pool, prepared.validation, None
    if fitted is not None:
        rows_of_part, on_part = fitted.labelled, torch.from_numpy(np.log(fitted.held_out))
        test = pool.examples[rows_of_part], pool.labels[rows_of_part]
        pool = dataclasses.replace(pool, test_examples=test[0], test_labels=test[1])
    elif inputs.test_examples is not None:
        on_part = _logits(network, inputs, inputs.test_examples, half)
    return Look(
        step=int(tensors["step"]),
        pool=pool,
        part=prepared.judged_on,
        rows_of_part=rows_of_part,
        labelled=labelled,
        unlabelled=looked_at,
        num_unlabelled=len(without),
        on_labelled=_probabilities(of_labelled, calibration),
        on_unlabelled=_probabilities(of_unlabelled, calibration),
        on_part=None if on_part is None else _probabilities(on_part, calibration),
        on_part_before=None if on_part is None else on_part.softmax(1).numpy(),
        calibration=calibration,
        around=_around(features, torch.from_numpy(labels[labelled]), of_unlabelled),
        propensity=propensity.numpy(),
    )


def _logits(network: nn.Module, inputs: Inputs, examples: Tensor, half: bool) -> Tensor:
    if len(examples) == 0:
        return torch.empty(0, inputs.num_classes, dtype=torch.float64)
    return torch.cat([part.cpu() for part in logits_of(network, inputs, examples, half)]).double()


def _around(features: list[list[Tensor]], labels: Tensor, logits: Tensor) -> Around | None:
    """Of the labelled rows first, then of unlabelled ones, whose logits these are."""
    if not features or not len(labels) or not len(logits):
        return None
    rows = [len(labels), len(logits)]
    layers = [torch.split(torch.cat([part.cpu() for part in layer]), rows) for layer in features]
    seen, others = zip(*layers, strict=True)
    predicted = logits.softmax(1).float()
    doubted, names = doubtful(seen, labels, others, predicted)
    pairs = exchanged(fit_of_names(seen, labels, others, predicted), len(labels))[1]
    return Around(pairs, doubted.numpy(), names.double().numpy())


def _probabilities(logits: Tensor, calibration: Calibration) -> NDArray[np.float64]:
    found: NDArray[np.float64] = calibration(logits).exp().numpy()
    return found
