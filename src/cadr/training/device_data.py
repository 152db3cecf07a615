"""The data as the step and the evaluation want it: tensors on the device, rows of the two streams."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cadr.algorithms import Facts
from cadr.data.pool import MISSING, Pool
from cadr.data.sources.columns import RARE
from cadr.errors import DataError
from cadr.models import normalised


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything about the data that a run reads; nothing in it changes while the run lasts."""

    examples: Tensor  # uint8 (n, h, w, 3) or float32 (n, d)
    labels: Tensor  # (n,) int64, −1 where missing; a generation may have added to those given
    truth: Tensor  # (n,) int64, −1 where unknown; for reporting only
    labelled: Tensor  # rows with a label
    stream: Tensor  # rows of the unlabelled stream
    test_examples: Tensor | None
    test_labels: Tensor | None
    num_classes: int
    counts: Tensor  # (C,) float, of the labels that were given
    centre: Tensor | None = None  # (d,) what is taken from features, their mean, and what they are divided by
    scale: Tensor | None = None

    @staticmethod
    def of(pool: Pool, device: torch.device) -> Inputs:
        labelled = np.flatnonzero(pool.labels != MISSING)
        if len(labelled) == 0:
            raise DataError(f"{pool.name} has no labels at all; label at least one example of each class.")
        missing = [name for name, count in zip(pool.class_names, pool.counts, strict=True) if count == 0]
        if missing:
            drawn = pool.hidden_labels is not None  # a protocol took labels away
            remedy = "take another seed, or more labels" if drawn else "label one, or leave the class out"
            raise DataError(f"No example of class {', '.join(missing)} is labelled; {remedy}.")
        pool.check_finite()  # a mapped file has not been looked at yet, and one NaN would spread to every weight
        stream = np.arange(len(pool.labels)) if pool.stream is None else pool.stream
        test = None if pool.test_examples is None else _tensor(pool.test_examples, device)
        centre = scale = None
        examples = _tensor(pool.examples, device)
        if pool.kind == "features":
            scale, centre = _scale_and_centre(examples[_tensor(stream, device)], examples[_tensor(labelled, device)])
            examples = (examples - centre) / scale
            test = None if test is None else (test - centre) / scale
        return Inputs(
            examples=examples,
            labels=_tensor(pool.labels, device),
            truth=_tensor(pool.labels if pool.hidden_labels is None else pool.hidden_labels, device),
            labelled=_tensor(labelled, device),
            stream=_tensor(stream, device),
            test_examples=test,
            test_labels=None if pool.test_labels is None else _tensor(pool.test_labels, device),
            num_classes=pool.num_classes,
            counts=torch.tensor(pool.counts.tolist(), dtype=torch.float32),
            centre=centre,
            scale=scale,
        )

    @property
    def is_image(self) -> bool:
        return self.examples.ndim == 4

    def ready(self, views: Tensor, model: nn.Module, dtype: torch.dtype) -> Tensor:
        """Views as the model takes them."""
        return normalised(views, model, dtype) if self.is_image else views

    def facts(self, steps: int, generation: int = 0) -> Facts:
        """What an algorithm may know before training."""
        in_stream = torch.isin(self.labelled, self.stream)
        return Facts(
            num_classes=self.num_classes,
            labelled_counts=self.counts,
            num_examples=len(self.stream) + int((~in_stream).sum()),
            num_unlabelled=len(self.stream),
            labelled_in_stream=bool(in_stream.all()),
            steps=steps,
            generation=generation,
        )


def _scale_and_centre(rows: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of each feature of the stream.

    A word that one row of n has would lie √n standard deviations from the mean, and the network would know the row by
    that word alone. So what is 0 or 1 is brought no further than 1 / `RARE` from its mean.

    What never changes has taught the network nothing, and its weights are still those of chance: should it change when
    the network is used, it must not count, and is divided by so much that it does not.
    """
    scale, centre = torch.std_mean(rows, dim=0, correction=0)
    two_valued = ((rows == 0) | (rows == 1)).all(0)
    scale = torch.where(two_valued, scale.clamp(min=RARE), scale)
    constant = (rows == rows[0]).all(0) & (labelled == rows[0]).all(0)
    centre = torch.where(constant, rows[0], centre)  # a mean is rounded
    scale = torch.where(constant, torch.finfo(rows.dtype).max, scale)
    return torch.where(scale > 0, scale, 1.0), centre


def _tensor(array: NDArray[Any], device: torch.device) -> Tensor:
    with warnings.catch_warnings():  # the arrays are read-only, and nothing here writes to them
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array).to(device)
