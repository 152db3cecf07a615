"""Ranks: the processes that `torchrun` starts for one run, and what they tell one another. Of one process, nothing.

A loss is computed by every rank on the logits of the whole batch, so a rank's gradient of it is whole for what the rank
itself put in: what other ranks put in is their part. `rows_of_all` therefore gives each rank back the gradient of its
own rows alone, and only sums that enter a rank's own rows, as batch norm's moments do, collect gradients from all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from cadr.errors import CadrError, TrainingError

T = TypeVar("T")


class RankLostError(TrainingError):
    """Another rank does not answer any more."""


class SharedError(TrainingError):
    """What went wrong on another rank, which says so itself."""


def launched() -> int:
    """How many ranks torchrun has started, whether or not they have met."""
    return int(os.environ.get("WORLD_SIZE", 1)) if "MASTER_ADDR" in os.environ else 1


def number() -> int:
    """Which of them this is."""
    return int(os.environ.get("RANK", 0)) if launched() > 1 else 0


def local() -> int:
    """Which of those on this machine."""
    return int(os.environ.get("LOCAL_RANK", 0)) if launched() > 1 else 0


def world() -> int:
    """How many have met."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def total(tensor: Tensor) -> Tensor:
    """The sum over ranks, in place."""
    if world() > 1:
        with _answering():
            dist.all_reduce(tensor)
    return tensor


def total_with_gradient(tensor: Tensor) -> Tensor:
    """The sum over ranks of what every one of them goes on to use in rows of its own."""
    return _Total.apply(tensor) if world() > 1 else tensor  # type: ignore[no-untyped-call]


def own_rows(tensor: Tensor) -> Tensor:
    """Every K-th row, so that each rank has some of every kind of view; pictures keep their order in memory."""
    rows = tensor[number() :: world()]
    last = tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    return rows.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


def rows_of_all(rows: Tensor, count: int) -> Tensor:
    """`count` rows (n, C), of which `own_rows` were taken, put together again on every rank."""
    return _Rows.apply(rows, count)  # type: ignore[no-untyped-call, no-any-return]


def agreed(value: T) -> T:
    """What the first rank says: of what depends on a clock."""
    return from_first(lambda: value)


def either(value: bool) -> bool:
    """Whether it is so on any rank."""
    if world() == 1:
        return value
    with _answering():
        found: list[Any] = [None] * world()
        dist.all_gather_object(found, value)
    return any(found)


def from_first(make: Callable[[], T]) -> T:
    """What the first rank makes, once for all; where it cannot, no rank goes on."""
    if world() == 1:
        return make()
    box: list[Any] = [None, ""]
    error: CadrError | OSError | None = None
    if number() == 0:
        try:
            box[0] = make()
        except (CadrError, OSError) as failed:
            error, box = failed, [None, str(failed) or type(failed).__name__]
    with _answering():
        dist.broadcast_object_list(box, src=0)
    if error is not None:
        raise error
    if box[1]:
        raise SharedError(box[1])
    found: T = box[0]
    return found


def together(make: Callable[[], T]) -> T:
    """What every rank makes for itself; where one of them cannot, all end with what that one says."""
    if world() == 1:
        return make()
    made, said, error = None, "", None
    try:
        made = make()
    except CadrError as failed:
        error, said = failed, str(failed)
    everything: list[Any] = [None] * world()
    with _answering():
        dist.all_gather_object(everything, said)
    which = next((rank for rank, words in enumerate(everything) if words), None)
    if which is None:
        return made  # type: ignore[return-value]
    if which == number() == 0 and error is not None:
        raise error
    if number():
        raise SharedError(everything[which])
    raise TrainingError(f"On rank {which}: {everything[which]}")


def everyones(value: T) -> list[T]:
    """What each rank has, in order."""
    found: list[Any] = [value] * world()
    if world() > 1:
        with _answering():
            dist.all_gather_object(found, value)
    return found


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return total(tensor.clone())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return total(gradient.clone())


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, count: int) -> Tensor:
        whole = rows.new_zeros(count, *rows.shape[1:])
        whole[number() :: world()] = rows
        return total(whole)  # of zeros and one number each: exact

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient[number() :: world()], None


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo's and NCCL's alike
        reason = str(error).splitlines()[0][-120:]
        raise RankLostError(
            f"Rank {number()} lost the other ranks ({reason}); start the same command again, or let torchrun do it "
            "with --max-restarts: it continues from the last checkpoint."
        ) from None
