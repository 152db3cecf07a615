"""A trained run that answers questions: examples in, calibrated probabilities out; it needs no training data."""

from __future__ import annotations

import copy
import sys
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cadr.config import Config
from cadr.data.sources.base import Wanted
from cadr.embedding.items import Modality
from cadr.embedding.registry import Pretrained
from cadr.ensemble.module import unfitted
from cadr.errors import CheckpointError
from cadr.estimate.calibration import Calibration, uncalibrated
from cadr.models import normalised
from cadr.training import checkpoint
from cadr.training.ensemble_run import trained_model
from cadr.training.network import at_once, call, is_half
from cadr.training.plan import device_of
from cadr.training.prepare import build_model
from cadr.training.run_folder import CALIBRATION, RunFolder, with_model_located
from cadr.training.signature import InputSpec
from cadr.training.user_model import not_given
from cadr.utils.memory import kept_from_the_second
from cadr.utils.untrusted import parse_json, read_text

_FEW = 1000  # examples, for which giving memory back would take longer than it saves


class Predictor:
    """The averaged model of a run, with its preprocessing and calibration."""

    _MOST = 2**31  # rows at once

    def __init__(
        self,
        model: nn.Module,
        spec: InputSpec,
        calibration: Calibration,
        config: Config,
        device: torch.device,
        step: int,
    ) -> None:
        self.model, self.spec, self.calibration, self.config = model.to(device).eval(), spec, calibration, config
        self.device, self.step = device, step  # `step` of the run's steps are done: it need not be finished
        self.half = is_half(config.training.precision, device)
        self._batch = min(at_once(int(np.prod(spec.shape)), device), getattr(model, "rows_at_once", self._MOST))
        self._centre = self._scale = None
        if spec.centre is not None and spec.scale is not None:
            self._centre = torch.tensor(spec.centre, device=device)
            self._scale = torch.tensor(spec.scale, device=device)

    @staticmethod
    def load(out: Path | str, model: nn.Module | None = None, device: str = "auto") -> Predictor:
        """From a run's folder; a module of your own, if the run was trained with one, is given again."""
        folder = RunFolder.there(out)
        config, spec = folder.config(), InputSpec.read(folder.path)
        if config is None:
            raise CheckpointError(f"{out} is not a run: it holds no config.toml.")
        config = with_model_located(config, folder.path)
        tensors, _ = trained(folder, "predict with")
        if config.is_instant:
            model = unfitted()
        elif model is None:
            if config.model is None:
                raise not_given(out)
            model = build_model(config, len(spec.class_names), spec.model_shape)
        assert model is not None
        model = trained_model(config, model, tensors, out)
        step = int(tensors["step"])
        return Predictor(model, spec, read_calibration(folder.path, spec), config, device_of(device), step)

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which looks for the pretrained model itself."""
        return {name: value for name, value in self.__dict__.items() if name not in ("pretrained", "_double")}

    def on(self, device: torch.device) -> Predictor:
        return Predictor(self.model, self.spec, self.calibration, self.config, device, self.step)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.spec.class_names

    def wanted(self) -> Wanted:
        """How data to predict on are read."""
        spec, source = self.spec, self.config.source
        features, raw = self.pretrained, cast(Modality | None, spec.raw)
        return Wanted(spec.shape, spec.class_names, spec.table, source.label_column, source.image_size, features, raw)

    @cached_property
    def pretrained(self) -> Pretrained | None:
        """The model by which pictures or texts become the features that this one takes."""
        name = self.config.source.features
        if self.spec.pretrained is None or name is None:
            return None
        found = Pretrained.find(name, str(self.device))
        if found.fingerprint != self.spec.pretrained:
            raise CheckpointError(
                f"{name} is another model here than when the run was trained; put that one back, or train again."
            )
        return found

    @torch.inference_mode()
    def logits(self, examples: NDArray[Any]) -> Tensor:
        """(n, C) float32 on the device, for uint8 images or float32 features as they were trained on."""
        # In one piece from the start: small results that stay between the large tensors of a batch would split the
        # memory that these leave to the next one.
        found = torch.empty(len(examples), len(self.spec.class_names), device=self.device)
        batches = range(0, len(examples), self._batch)
        with kept_from_the_second(batches) if len(examples) > _FEW else nullcontext(batches) as parts:
            for i in parts:
                found[i : i + self._batch] = self._logits(examples[i : i + self._batch])
        return found

    def _logits(self, examples: NDArray[Any]) -> Tensor:
        x = torch.tensor(examples, device=self.device)
        if self._centre is not None and self._scale is not None:
            x = (x - self._centre) / self._scale
        else:
            x = normalised(x, self.model, torch.bfloat16 if self.half else torch.float32)
        return call(self.model, x, self.half)

    def probabilities(self, examples: NDArray[Any]) -> Tensor:
        """(n, C) float32, calibrated where the run has held out labels for it."""
        return self.calibration(self.logits(examples)).exp()

    @torch.inference_mode()
    def precise(self, examples: NDArray[Any]) -> Tensor:
        """As `probabilities`, but features are taken through the model in float64.

        A row's result then does not depend, to seven digits, on the rows that it is predicted together with.
        """
        if self._centre is None or self._scale is None:
            return self.probabilities(examples)
        x = (torch.tensor(examples, dtype=torch.float64, device=self.device) - self._centre) / self._scale
        return self.calibration(self._double(x)).exp()

    @cached_property
    def _double(self) -> nn.Module:
        return copy.deepcopy(self.model).double()


def read_calibration(out: Path, spec: InputSpec) -> Calibration:
    path = out / CALIBRATION
    if not path.exists():
        return uncalibrated(len(spec.class_names))
    try:
        content = parse_json(read_text(path))
        read = Calibration(**{**content, "correction": tuple(map(float, content["correction"]))})
        if len(read.correction) != len(spec.class_names) or not read.temperature > 0:
            raise ValueError("it is of another model")
        return read
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} cannot be used ({error}); delete it to predict uncalibrated.") from None


def trained(folder: RunFolder, purpose: str) -> checkpoint.Checkpoint:
    """The checkpoint to use. Standard error hears of a damaged one: predictions may go to standard output."""
    found, problem = checkpoint.newest(folder.path)
    if found is None:
        raise CheckpointError(f"{folder.path} holds no checkpoint to {purpose}; train it first.")
    if problem:
        step = int(found[0]["step"])
        print(f"Warning: {problem} The one before it is used, of step {step:,}.", file=sys.stderr, flush=True)
    return found
