"""What is fitted around a classifier of scikit-learn's, answering questions as a trained run does; it has no folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cadr.data.pool import MISSING, Pool
from cadr.data.sources.base import Wanted
from cadr.embedding.registry import Pretrained
from cadr.ensemble.estimator import Estimator
from cadr.ensemble.fit import FittedEnsemble, fit_ensemble
from cadr.ensemble.learners import Floats
from cadr.errors import ConfigError
from cadr.estimate.calibration import uncalibrated
from cadr.metrics import confusion
from cadr.training.feed import Inputs
from cadr.training.prepare import CROSS_FITTED
from cadr.training.record import scores


class AroundEstimator:
    """Rounds of class-aware imputation around an estimator, its probabilities in the estimated class shares."""

    def __init__(self, estimator: Any, pool: Pool, seed: int, shares: Floats | None) -> None:
        learner, self._estimator = Estimator(estimator), estimator
        if pool.kind == "image":
            raise ConfigError(
                "estimator learns from features, but X holds pictures; make features of them (cadr embed) first."
            )
        inputs = Inputs.of(pool, torch.device("cpu"), resident=True)
        assert inputs.centre is not None  # of features there is one
        assert inputs.scale is not None
        self._centre, self._scale = inputs.centre.numpy(), inputs.scale.numpy()
        self._shape, self._class_names = pool.examples.shape[1:], pool.class_names
        self.pretrained: Pretrained | None = None  # by which pictures or texts became these features
        self.calibration = uncalibrated(pool.num_classes)
        self.fitted: FittedEnsemble = fit_ensemble(
            inputs.examples.numpy(),
            pool.labels,
            self._scale.astype(np.float64),
            pool.num_classes,
            seed,
            shares=shares,
            estimator=learner,
            weights=pool.weights,
        )
        self._labels = pool.labels[pool.labels != MISSING]

    def wanted(self) -> Wanted:
        return Wanted(self._shape, self._class_names)

    def precise(self, examples: NDArray[Any]) -> Tensor:
        """(n, C) probabilities."""
        return torch.from_numpy(self.fitted.predict((examples - self._centre) / self._scale))

    def record(self) -> dict[str, Any]:
        """How it was judged by cross-fitting, as in the history of a run."""
        truth, guess = torch.from_numpy(self._labels), torch.from_numpy(self.fitted.held_out.argmax(1))
        found = scores(confusion(truth, guess, len(self._class_names)))
        return {"kind": "evaluation", "step": 100, "on": CROSS_FITTED, **found}

    def not_kept(self) -> ConfigError:
        """Why there is no run folder."""
        return ConfigError(
            f"what is fitted around {type(self._estimator).__name__} cannot be saved, exported or reported on: that "
            "would take a pickle, which can execute code; pickle it yourself, or name an algorithm, such as forest"
        )
