"""The data as a run reads them, and the batch of a step: which rows it sees, and their views.

Everything about a batch is a function of the seed and the step's number, which is a tensor on the device: so a captured
step makes its batches by itself, and nothing has to be saved to go on.
"""

from __future__ import annotations

import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cadr.algorithms import Algorithm, Batch, Facts
from cadr.config import Training
from cadr.data.pool import MISSING, Pool, chunks
from cadr.data.shuffle import LABELLED, UNLABELLED, balanced_indices, indices
from cadr.data.sources.columns import RARE
from cadr.errors import DataError
from cadr.models import normalised
from cadr.training.streamed import Every, Streamed, is_streamed
from cadr.utils import random_numbers

_COPIES, _FEWEST = 64, 8  # of a row with a weight that is no whole number, in the mean and at least, in one pass
_READERS, _AHEAD = 4, 4  # threads, and steps whose rows are read before they are needed
_WEAK_LABELLED, _WEAK, _STRONG, PROBE, _METHOD, _MORE = range(6)  # streams of random numbers


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything about the data that a run reads; nothing in it changes while the run lasts."""

    examples: Tensor  # uint8 (n, h, w, 3) or float32 (n, d), or what stands for them (streamed.py)
    labels: Tensor  # (n,) int64, −1 where missing; a generation may have added to those given
    truth: Tensor  # (n,) int64, −1 where unknown; for reporting only
    labelled: Tensor  # rows with a label
    stream: Tensor  # rows of the unlabelled stream, or what stands for every row
    test_examples: Tensor | None
    test_labels: Tensor | None
    num_classes: int
    counts: Tensor  # (C,) float, of the labels that were given
    centre: Tensor | None = None  # (d,) what is taken from features, their mean, and what they are divided by
    scale: Tensor | None = None

    @staticmethod
    def of(pool: Pool, device: torch.device, resident: bool = False) -> Inputs:
        """On the device as a whole if they fit, or if they must be `resident`."""
        labelled = _labelled(pool.labels)
        if len(labelled) == 0:
            raise DataError(f"{pool.name} has no labels at all; label at least one example of each class.")
        missing = [name for name, count in zip(pool.class_names, pool.counts, strict=True) if count == 0]
        if missing:
            drawn = pool.hidden_labels is not None  # a protocol took labels away
            remedy = "take another seed, or more labels" if drawn else "label one, or leave the class out"
            raise DataError(f"No example of class {', '.join(missing)} is labelled; {remedy}.")
        if not resident and pool.weights is None and is_streamed(pool, device):
            return _streamed(pool, labelled, device)
        pool.check_finite()  # a mapped file has not been looked at yet, and one NaN would spread to every weight
        stream = np.arange(len(pool.labels)) if pool.stream is None else pool.stream
        test = None if pool.test_examples is None else _tensor(pool.test_examples, device)
        centre = scale = None
        examples = _tensor(pool.examples, device)
        if pool.kind == "features":
            weights = None if pool.weights is None else _tensor(pool.weights[stream], device)
            rows, known = examples[_tensor(stream, device)], examples[_tensor(labelled, device)]
            scale, centre = _scale_and_centre(rows, known, weights)
            examples = (examples - centre) / scale
            test = None if test is None else (test - centre) / scale
        if pool.weights is not None:
            labelled, stream = _repeated(labelled, pool.weights), _repeated(stream, pool.weights)
        return Inputs(
            examples=examples,
            labels=_tensor(pool.labels, device),
            truth=_tensor(pool.labels if pool.hidden_labels is None else pool.hidden_labels, device),
            labelled=_tensor(labelled, device),
            stream=_tensor(stream, device),
            test_examples=test,
            test_labels=None if pool.test_labels is None else _tensor(pool.test_labels, device),
            num_classes=pool.num_classes,
            counts=torch.tensor(
                np.bincount(pool.labels[labelled], minlength=pool.num_classes).tolist(), dtype=torch.float32
            ),
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
        everywhere = isinstance(self.stream, Every)
        in_stream = torch.isin(self.labelled, self.labelled if everywhere else self.stream)
        return Facts(
            num_classes=self.num_classes,
            labelled_counts=self.counts,
            num_examples=len(self.stream) + int((~in_stream).sum()),
            num_unlabelled=len(self.stream),
            labelled_in_stream=bool(in_stream.all()),
            steps=steps,
            generation=generation,
        )


class BatchRows:
    """A step's labelled rows and its positions in the unlabelled stream, a function of the seed and the step."""

    def __init__(self, inputs: Inputs, training: Training, balanced: bool, longest: int) -> None:
        self._inputs, self._training = inputs, training
        # Asked for now: later it would be waited for until all steps are done.
        self._labels = inputs.labels[inputs.labelled].cpu().numpy() if balanced else None
        self.batch, self.width = training.batch, training.batch * (1 + training.ratio)
        device = inputs.examples.device
        self._table = torch.zeros(longest, self.width, dtype=torch.int64, device=device)
        self._uploaded = torch.zeros(0, self.width, dtype=torch.int64)  # the same on the host
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
        self._uploaded = rows
        self._start.fill_(start)

    def on_host(self, step: int) -> Tensor | None:
        """The numbers of an uploaded step's labelled rows and positions; None of another's."""
        start, stop = self._held or (0, 0)
        return self._uploaded[step - start] if start <= step < stop else None

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


class Resident:
    """Batches of data that lie on the device as a whole."""

    def __init__(
        self,
        inputs: Inputs,
        algorithm: Algorithm,
        views: Any,
        view_state: dict[str, Tensor],  # the live tensors: views that adapt draw by them
        training: Training,
        longest: int,  # steps between two uploads of rows, at most
        start: int,  # the step at which the method begins to count
        model: nn.Module,  # whose way to normalise pixels it is
        dtype: torch.dtype,
    ) -> None:
        self.inputs, self.algorithm, self.views, self.view_state = inputs, algorithm, views, view_state
        self.seed, self.begun, self.model, self.dtype = training.seed, start, model, dtype
        self.rows = BatchRows(inputs, training, algorithm.balanced_labels, longest)

    def fetch(self, step: int) -> None:
        """Have the examples of a step that was uploaded where `batch` reads them: here they are there already."""

    def examples(self, labelled: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        """Of the labelled and of the unlabelled rows of a step."""
        examples, rows = self.inputs.examples, self.inputs.stream[position]
        # Many times as fast as an index on a CPU, which copies number by number.
        return examples.index_select(0, labelled), examples.index_select(0, rows)

    def batch(self, step: Tensor) -> Batch:
        """The views of a step that was uploaded, ready for the model."""
        inputs, weak_views, strong_views = self.inputs, self.algorithm.weak_views, self.algorithm.strong_views
        others = _MORE + weak_views + strong_views
        keys = random_numbers.keys(self.seed, step, others + self.algorithm.labelled_views - 1)
        weak_keys = [keys[_WEAK], *keys[_MORE : _MORE + weak_views - 1]]
        strong_keys = [keys[_STRONG], *keys[_MORE + weak_views : others]][:strong_views]
        labelled, position = self.rows.of(step)
        seen, unseen = self.examples(labelled, position)
        more = [self.views.strong_view(seen, key, self.view_state) for key in keys[others:]]
        views = (
            _stacked(seen, [self.views.weak(seen, keys[_WEAK_LABELLED]), *more]),
            _stacked(unseen, [self.views.weak(unseen, key) for key in weak_keys]),
            _stacked(unseen, [self.views.strong_view(unseen, key, self.view_state) for key in strong_keys]),
        )
        first, weak, strong = (inputs.ready(view, self.model, self.dtype) for view in views)
        within = step - self.begun
        return Batch(first, inputs.labels[labelled], weak, strong, position, keys[_METHOD], within)


class Streaming(Resident):
    """Batches of data that stay in their file: threads read the rows of the steps to come while one is computed."""

    def __init__(self, inputs: Inputs, *others: Any) -> None:
        super().__init__(inputs, *others)
        self.source: Streamed = cast(Any, inputs.examples)
        self._labelled = inputs.labelled.cpu()
        self._readers = ThreadPoolExecutor(_READERS, "rows")
        self._coming: dict[int, Future[tuple[Tensor, Tensor]]] = {}
        batch = self.rows.batch
        dtype = torch.uint8 if inputs.is_image else torch.float32
        shapes = [(n, *self.source.shape[1:]) for n in (batch, self.rows.width - batch)]
        self._seen, self._unseen = (torch.zeros(shape, dtype=dtype, device=self.source.device) for shape in shapes)

    def fetch(self, step: int) -> None:
        for ahead in range(step, step + _AHEAD):
            if ahead not in self._coming and (rows := self.rows.on_host(ahead)) is not None:
                self._coming[ahead] = self._readers.submit(self._read, rows)
        for passed in [other for other in self._coming if not step <= other < step + _AHEAD]:
            self._coming.pop(passed).cancel()
        if step in self._coming:  # beyond the table a captured step makes a batch that nobody reads
            seen, unseen = self._coming[step].result()
            self._seen.copy_(seen, non_blocking=True)
            self._unseen.copy_(unseen, non_blocking=True)

    def examples(self, labelled: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        return self._seen, self._unseen

    def _read(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        batch, stream = self.rows.batch, self.inputs.stream
        position = rows[batch:]
        unlabelled = position if isinstance(stream, Every) else stream.cpu()[position]
        found = [self.source.gather(part.numpy()) for part in (self._labelled[rows[:batch]], unlabelled)]
        seen, unseen = (part.pin_memory() if self.source.device.type == "cuda" else part for part in found)
        return seen, unseen


def feed_of(inputs: Inputs, *others: Any) -> Resident:
    """What makes the batches of these data."""
    return (Streaming if isinstance(inputs.examples, Streamed) else Resident)(inputs, *others)


def copy_batch(batch: Batch, to: Batch) -> None:
    for new, old in zip(batch, to, strict=True):
        old.copy_(new)


def _stacked(examples: Tensor, views: list[Tensor]) -> Tensor:
    """Views of the same examples one after another, none at all included."""
    return torch.cat(views) if len(views) > 1 else views[0] if views else examples[:0]


def _labelled(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows with a label, found in little memory."""
    start, found = 0, []
    for chunk in chunks(labels):
        found.append(start + np.flatnonzero(chunk != MISSING))
        start += len(chunk)
    return np.concatenate(found)


def _streamed(pool: Pool, labelled: NDArray[np.int64], device: torch.device) -> Inputs:
    """Inputs whose examples stay in their file; features are standardised by a sample of `SAMPLE` rows."""
    examples = Streamed(pool.examples, pool.name, device)
    test = None if pool.test_examples is None else _tensor(pool.test_examples, device)
    centre = scale = None
    if pool.kind == "features":
        sample, known = examples.sample(pool.stream), examples.sample(labelled)
        if not (np.isfinite(sample).all() and np.isfinite(known).all()):
            pool.check_finite()  # which says where
        scale, centre = _scale_and_centre(_tensor(sample, device), _tensor(known, device))
        examples.standardise(scale, centre)
        test = None if test is None else (test - centre) / scale
    labels, every = _tensor(pool.labels, device), Every(len(pool.labels), device)
    return Inputs(
        examples=cast(Tensor, examples),
        labels=labels,
        truth=labels if pool.hidden_labels is None else _tensor(pool.hidden_labels, device),
        labelled=_tensor(labelled, device),
        stream=cast(Tensor, every) if pool.stream is None else _tensor(pool.stream, device),
        test_examples=test,
        test_labels=None if pool.test_labels is None else _tensor(pool.test_labels, device),
        num_classes=pool.num_classes,
        counts=torch.tensor(pool.counts.tolist(), dtype=torch.float32),
        centre=centre,
        scale=scale,
    )


def _repeated(rows: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows as often as they come up in one pass: as their weights say, or in proportion, if these are no whole numbers.

    So every method heeds weights, whatever its losses. Multiples are rounded so that their sum is not.
    """
    wanted = weights[rows]
    if (wanted != np.rint(wanted)).any():
        wanted = wanted * min(_COPIES / wanted.mean(), _FEWEST / wanted.min())
    edges = np.rint(np.cumsum(wanted)).astype(np.int64)
    return np.repeat(rows, np.diff(edges, prepend=0))


def _scale_and_centre(rows: Tensor, labelled: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of each feature of the stream.

    A word that one row of n has would lie √n standard deviations from the mean, and the network would know the row by
    that word alone. So what is 0 or 1 is brought no further than 1 / `RARE` from its mean.

    What never changes has taught the network nothing, and its weights are still those of chance: should it change when
    the network is used, it must not count, and is divided by so much that it does not.
    """
    if weights is None:
        scale, centre = torch.std_mean(rows, dim=0, correction=0)
    else:
        w = (weights / weights.sum()).unsqueeze(1)
        mean = (w * rows).sum(0)
        scale, centre = (w * (rows - mean) ** 2).sum(0).sqrt().to(rows.dtype), mean.to(rows.dtype)
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
