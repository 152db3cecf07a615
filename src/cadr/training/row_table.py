"""Which rows a step sees: a table on the device, uploaded once for many steps."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cadr.config import Training
from cadr.data.shuffle import LABELLED, UNLABELLED, balanced_indices, indices
from cadr.training.device_data import Inputs


class Rows:
    """A step's labelled rows and its positions in the unlabelled stream, a function of the seed and the step."""

    def __init__(self, inputs: Inputs, training: Training, balanced: bool, longest: int) -> None:
        self._inputs, self._training = inputs, training
        # Asked for now: later it would be waited for until all steps are done.
        self._labels = inputs.labels[inputs.labelled].cpu().numpy() if balanced else None
        device, width = inputs.examples.device, training.batch * (1 + training.ratio)
        self._table = torch.zeros(longest, width, dtype=torch.int64, device=device)
        self._start = torch.zeros((), dtype=torch.int64, device=device)  # the step of the first row
        self._held: tuple[int, int] | None = None  # steps that the table holds
        self._made: tuple[int, int, Tensor] | None = None  # those to come, on the host

    def of(self, step: Tensor) -> tuple[Tensor, Tensor]:
        """Beyond the end of the table: what happens to be in its last row, or in one that was not overwritten."""
        at = (step - self._start).clamp(max=len(self._table) - 1)
        row = self._table.index_select(0, at.reshape(1)).squeeze(0)
        return self._inputs.labelled[row[: self._training.batch]], row[self._training.batch :]

    def make(self, start: int, stop: int) -> None:
        """Get ready to upload these steps' rows; worth doing while the device is busy."""
        self._made = (start, stop, self._rows(start, stop))

    def upload(self, start: int, stop: int) -> None:
        """After this `of` knows the steps start … stop − 1, and no others."""
        if self._held == (start, stop):
            return
        if self._made is None or self._made[:2] != (start, stop):
            self.make(start, stop)
        assert self._made is not None
        rows, self._made, self._held = self._made[2], None, (start, stop)
        self._table[: len(rows)].copy_(rows, non_blocking=True)
        self._start.fill_(start)

    def _rows(self, start: int, stop: int) -> Tensor:
        inputs, training = self._inputs, self._training
        if self._labels is None:
            labelled = indices(training.seed, LABELLED, len(inputs.labelled), training.batch, start, stop)
        else:
            labelled = balanced_indices(training.seed, LABELLED, self._labels, training.batch, start, stop)
        size = training.batch * training.ratio
        unlabelled = indices(training.seed, UNLABELLED, len(inputs.stream), size, start, stop)
        rows = torch.from_numpy(np.concatenate((labelled, unlabelled), axis=1))
        return rows.pin_memory() if self._table.is_cuda else rows
