"""A run of the ensemble: fitted in one go, judged by cross-fitting, and kept in a run folder as any other.

The folder holds the same files as that of a network. The checkpoint has the tensors of the fitted module, and beside
them the held-out probabilities of the labelled rows, of which nothing else would be left.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cadr.config import Config
from cadr.data.pool import MISSING, unlabelled
from cadr.data.sources.columns import Column
from cadr.ensemble.module import EnsembleModule
from cadr.errors import CheckpointError
from cadr.estimate.calibration import Calibration, calibration_error
from cadr.metrics import confusion
from cadr.training import checkpoint, signature
from cadr.training.clock import device_name, peak_memory_gib
from cadr.training.feed import Inputs
from cadr.training.network import evaluate
from cadr.training.prepare import CROSS_FITTED, Prepared, check_same_data, fingerprint, write
from cadr.training.record import Record, scores
from cadr.training.result import describe_run, summary
from cadr.training.run_folder import CALIBRATION, RESULT, RunFolder
from cadr.training.signature import InputSpec
from cadr.training.state import load_averaged
from cadr.utils.text import counted, duration

if TYPE_CHECKING:
    from cadr.ensemble.fit import FittedEnsemble, Fitting

# Chosen on news and made-up columns, seeds 11 to 13: 1 lets one that says nothing cost more, and one that says half of
# the classes gain less.
_BESIDE_TEXTS = 0.3
_MODULE, _ROWS, _HELD_OUT = "ensemble.", "labelled_rows", "held_out"


@dataclass(frozen=True, eq=False)
class SavedEnsemble:
    """What a checkpoint keeps."""

    module: EnsembleModule
    labelled: NDArray[np.int64]  # rows of the data
    held_out: NDArray[np.float64]  # (labelled, C) probabilities by fits that did not see the row's label

    def tensors(self) -> dict[str, Tensor]:
        state = {f"{_MODULE}{name}": tensor for name, tensor in self.module.state_dict().items()}
        return state | {_ROWS: torch.from_numpy(self.labelled), _HELD_OUT: torch.from_numpy(self.held_out)}

    @staticmethod
    def of(tensors: dict[str, Tensor], run: Path | str) -> SavedEnsemble:
        """What the checkpoint of a run holds; tried on a row, as its parts are made by what the tensors say of them."""
        spec = InputSpec.read(Path(run))
        state = {name.removeprefix(_MODULE): t for name, t in tensors.items() if name.startswith(_MODULE)}
        classes = len(spec.class_names)
        try:
            module = EnsembleModule.of_tensors(state).eval()
            labelled, held_out = tensors[_ROWS].numpy(), tensors[_HELD_OUT].numpy()
            with torch.no_grad():
                module.check(spec.shape[0])
                scored = module(torch.zeros(1, *spec.shape))
            fits = scored.shape == (1, classes) and held_out.shape == (len(labelled), classes)
            fits = fits and bool(((labelled >= 0) & (labelled < spec.rows)).all())
        except (KeyError, ValueError, IndexError, TypeError, RuntimeError):
            fits = False
        if not fits:
            raise CheckpointError(f"The checkpoint in {run} is of no ensemble for these data; train the run again.")
        return SavedEnsemble(module, labelled, held_out)

    def judged(self, labels: NDArray[np.int64], num_classes: int, weights: NDArray[np.float64] | None = None) -> Record:
        """Accuracy, recalls and confusion of the labelled rows, each predicted by a fit to others.

        `weights` are those of all rows; accuracy and recalls count by them.
        """
        truth, guess = torch.from_numpy(labels[self.labelled]), torch.from_numpy(self.held_out.argmax(1))
        counts = confusion(truth, guess, num_classes)
        if weights is None:
            return scores(counts)
        weighted = torch.zeros(num_classes, num_classes, dtype=torch.float64)
        weighted.index_put_((truth, guess), torch.from_numpy(weights[self.labelled]), accumulate=True)
        return scores(weighted) | {"confusion": counts.tolist()}


def trained_model(config: Config, model: nn.Module, tensors: dict[str, Tensor], run: Path | str) -> nn.Module:
    """The model that a checkpoint holds: an ensemble as a whole, a network's averaged weights in `model`."""
    return SavedEnsemble.of(tensors, run).module if config.is_instant else load_averaged(model, tensors, run)


def in_unit_of_texts(
    columns: Sequence[Column] | None, x: NDArray[np.float32], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What each feature's standard deviation is taken for, where texts stand beside numbers and words in a table.

    Numbers are in units of their own, of which one can outweigh all that texts say. A column beside them varies as a
    share of what the vectors of texts do in their main direction. Of standardised rows and what they were divided by.
    """
    of_texts = np.concatenate([[c.texts is not None] * len(c.features) for c in columns or ()] or [[]]).astype(bool)
    if of_texts.all() or not of_texts.any():
        return scale
    vectors = x[:, of_texts].astype(np.float64) * scale[of_texts]
    return np.where(of_texts, scale, _BESIDE_TEXTS * np.sqrt(np.linalg.eigvalsh(vectors.T @ vectors)[-1] / len(x)))


class EnsembleRun:
    """From the data to a finished folder. Nothing is kept on the way: what was stopped starts again."""

    def __init__(self, prepared: Prepared, folder: RunFolder) -> None:
        self.prepared, self.folder = prepared, folder
        self.began = time.perf_counter()
        self.inputs = Inputs.of(prepared.pool, torch.device("cpu"), resident=True)
        self.fits = 0  # that are done

    def records(self) -> Iterator[Record]:
        from cadr.ensemble.fit import fitting  # here, as a network trains without SciPy and scikit-learn

        pool, config = self.prepared.pool, self.prepared.config
        found, problem = checkpoint.recover(self.folder.path)
        if found is not None:
            check_same_data(self.folder, pool, found[1])
        write(self.prepared, self.folder)
        self.folder.write(signature.FILE, self._spec().to_json())
        self.folder.write(self.folder.metrics.name, "")
        words = (
            f"Fitting to {counted(pool.num_labelled, 'labelled row')} and {pool.num_unlabelled} unlabelled ones of "
            f"{pool.num_classes} classes."
        )
        yield {
            "kind": "start", "step": 0, "steps": 100, "resumed": 0, "device": "cpu", "parameters": 0,
            "message": " ".join(filter(None, (problem, words))),
        }  # fmt: skip
        rows = self._rows()
        work = fitting(
            self.inputs.examples.numpy()[rows],
            pool.labels[rows],
            self._scale(),
            pool.num_classes,
            config.training.seed,
            config.algorithm.members,
            self._shares(),
            weights=None if pool.weights is None else pool.weights[rows],
        )
        ensemble = yield from self._fit(work)
        labelled = rows[pool.labels[rows] != MISSING]
        fitted = SavedEnsemble(ensemble.module().eval(), labelled, ensemble.held_out)
        records = [self._fitted_record(ensemble), self._evaluation(fitted)]
        for record in records:
            self.folder.append(record)
            yield record
        yield self._finish(fitted, records)

    def _fit(self, work: Fitting) -> Any:
        """The pieces of the fit, and a record for each; returns what it came to."""
        while True:
            try:
                name, share = next(work)
            except StopIteration as end:
                return end.value
            self.fits += 1
            seconds = time.perf_counter() - self.began
            left = seconds / share - seconds
            yield {
                "kind": "fit",
                "step": round(100 * share),
                "message": f"{name} fitted, {100 * share:.0f} % done"
                + (f", {duration(left)} left" if left >= 1 else ""),
                "timing": self._timing(),
            }

    def _rows(self) -> NDArray[np.int64]:
        """Rows that take part: labelled ones and those of the stream."""
        pool = self.prepared.pool
        if pool.stream is None:
            return np.arange(len(pool.labels))
        return np.union1d(pool.stream, np.flatnonzero(pool.labels != MISSING))

    def _scale(self) -> NDArray[np.float64]:
        assert self.inputs.scale is not None  # of features there is one
        scale = np.asarray(self.inputs.scale.double().numpy())
        return in_unit_of_texts(self.prepared.pool.columns, self.inputs.examples.numpy(), scale)

    def _shares(self) -> NDArray[np.float64] | None:
        aimed = self.prepared.config.algorithm.aimed_at(self.prepared.pool.num_classes)
        return None if aimed is None else np.asarray(aimed.numpy())

    def _spec(self) -> InputSpec:
        return InputSpec.of(self.prepared.pool, self.inputs, False)

    def _timing(self) -> Record:
        seconds = time.perf_counter() - self.began
        return {"seconds": round(seconds, 3), "memory_gib": round(peak_memory_gib(torch.device("cpu")), 3)}

    def _fitted_record(self, ensemble: FittedEnsemble) -> Record:
        """What was found: how much each member counts, and the class shares."""
        pool = self.prepared.pool
        counts = pool.weighted_counts
        of_all = counts + ensemble.shares * pool.total(unlabelled(pool))
        labels = pool.labels[pool.labels != MISSING]

        def weighted(held_out: NDArray[np.float64]) -> float:
            """Accuracy where a label stands for as many rows as its class has to a label."""
            weights = (of_all / np.maximum(counts, 1e-12))[labels]
            weights = weights if pool.weights is None else weights * pool.weights[pool.labels != MISSING]
            return round(100 * float(weights @ (held_out.argmax(1) == labels) / weights.sum()), 4)

        return {
            "kind": "fitted",
            "step": 100,
            "members": {name: round(weight, 4) for name, weight in ensemble.weights().items()},
            "weighted_accuracy": weighted(ensemble.held_out),
            "weighted_accuracy_of_logistic": weighted(ensemble.logistic_held_out),
            "prior": [round(float(share), 6) for share in of_all / of_all.sum()],
            "shares": [round(float(share), 6) for share in ensemble.shares],
            "deviations": [round(float(deviation), 6) for deviation in ensemble.deviations],
            "timing": self._timing(),
        }

    def _evaluation(self, fitted: SavedEnsemble) -> Record:
        on, pool = self.prepared.judged_on, self.prepared.pool
        if on == CROSS_FITTED:
            found = fitted.judged(pool.labels, pool.num_classes, pool.weights)
        else:
            found = scores(evaluate(fitted.module, self.inputs, half=False))
        return {"kind": "evaluation", "step": 100, "on": on, **found, "timing": self._timing()}

    def _finish(self, fitted: SavedEnsemble, records: list[Record]) -> Record:
        pool = self.prepared.pool
        calibration = self._calibration(fitted)
        self.folder.write(CALIBRATION, json.dumps(dataclasses.asdict(calibration), indent=1) + "\n")
        facts = {"data": fingerprint(pool), "contents": pool.contents}
        self.folder.settle()
        checkpoint.save(self.folder.path, fitted.tensors() | {"step": torch.tensor(100)}, facts)
        found, judged = records
        result = {
            **describe_run(self.prepared.config, pool.name, self.prepared.model_name, self.prepared.split),
            "steps": 100,
            "device": device_name(torch.device("cpu")),
            "seconds": round(time.perf_counter() - self.began, 2),
            "ms_per_step": None,
            "peak_memory_gib": round(peak_memory_gib(torch.device("cpu")), 3),
            **summary([judged]),
            **{name: value for name, value in found.items() if name not in ("kind", "step", "timing")},
        }
        self.folder.write(RESULT, json.dumps(result, indent=1) + "\n")
        return {"kind": "finished", "step": 100, "message": "Finished.", "result": result}

    def _calibration(self, fitted: SavedEnsemble) -> Calibration:
        """The stack has been fitted to labels that its members did not see: all there is to do is to say how well."""
        pool = self.prepared.pool
        labels = torch.from_numpy(pool.labels[fitted.labelled])
        counts = torch.from_numpy(pool.weighted_counts)
        weights = (1.0 / counts.clamp(min=1e-12))[labels]
        if pool.weights is not None:
            weights *= torch.from_numpy(pool.weights[fitted.labelled])
        error = 100.0 * calibration_error(torch.from_numpy(fitted.held_out), labels, weights)
        return Calibration(1.0, (0.0,) * pool.num_classes, 0.0, error, error, len(labels))
