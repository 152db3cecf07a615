"""Data that stay in their file: rows are read by number when they are needed, and nothing else is.

For memory-mapped arrays that do not fit into memory, or onto the GPU. They are used like the tensors they stand for.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cadr.data.pool import Pool, is_mapped
from cadr.errors import DataError
from cadr.utils.memory import available

SAMPLE = 2**18  # rows from which features are standardised
_SHARE = 0.5  # of what is free may be taken by data


def is_streamed(pool: Pool, device: torch.device) -> bool:
    """Whether a pool's examples are too large to lie on the device as a whole, and are in a file."""
    if not is_mapped(pool.examples):
        return False
    copies = 2 if pool.kind == "features" and device.type == "cpu" else 1  # as they are, and standardised
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available()
    return free is not None and copies * pool.examples.nbytes > _SHARE * free


class Streamed:
    """The rows of a memory-mapped array, standardised on the way if they are features; on a device."""

    def __init__(self, array: NDArray[Any], name: str, device: torch.device) -> None:
        self.array, self.name, self.device = array, name, device
        self.shape, self.ndim = torch.Size(array.shape), array.ndim
        self.centre: NDArray[np.float32] | None = None
        self.scale: NDArray[np.float32] | None = None
        self._file = _opened(array)
        if self._file is not None:
            weakref.finalize(self, self._file[0].close)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        numbers = np.arange(len(self))[rows] if isinstance(rows, slice) else rows.cpu().numpy()
        return self.gather(numbers).to(self.device)

    def standardise(self, scale: Tensor, centre: Tensor) -> None:
        self.scale, self.centre = scale.cpu().numpy(), centre.cpu().numpy()

    def sample(self, rows: NDArray[np.int64] | None) -> NDArray[Any]:
        """Rows spread evenly over those given, or over all: the same ones at any time."""
        n = len(self.array) if rows is None else len(rows)
        places = np.arange(n) if n <= SAMPLE else np.arange(SAMPLE) * n // SAMPLE
        return self._rows(places if rows is None else rows[places])

    def gather(self, rows: NDArray[np.int64]) -> Tensor:
        """Some rows, on the host."""
        found = self._rows(rows)
        if found.dtype == np.float32 and not np.isfinite(found).all():
            row = int(rows[~np.isfinite(found).all(1)][0])
            raise DataError(f"{self.name}: row {row} holds a number that is not finite; mend or leave out such rows.")
        if self.centre is not None and self.scale is not None:
            found -= self.centre
            found /= self.scale
        return torch.from_numpy(found)

    def _rows(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """By one read each, where the file allows it: a row that is mapped takes a page, and the system reads on."""
        if self._file is None:
            return np.array(self.array[rows])
        file, start = self._file
        found = np.empty((len(rows), *self.array.shape[1:]), self.array.dtype)
        into, size = found.data.cast("B"), self.array[:1].nbytes
        for place, row in enumerate(rows.tolist()):
            os.preadv(file.fileno(), [into[place * size : (place + 1) * size]], start + row * size)
        return found


class Every:
    """All rows in order, as a stream that takes no memory."""

    def __init__(self, count: int, device: torch.device) -> None:
        self.count, self.device = count, device

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, position: Tensor | slice) -> Tensor:
        return torch.arange(self.count, device=self.device)[position] if isinstance(position, slice) else position

    def cpu(self) -> Tensor:
        """For phases that look at all rows between steps."""
        return torch.arange(self.count)


def _opened(array: NDArray[Any]) -> tuple[IO[bytes], int] | None:
    """The file of an array that is mapped as a whole, and where its first row begins; None if it cannot be read so."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.filename is None or not hasattr(os, "preadv"):
        return None
    same = base.ctypes.data == array.ctypes.data and base.shape == array.shape and base.dtype == array.dtype
    if base.mode != "r" or not same or not array.flags.c_contiguous:
        return None
    file = Path(base.filename).open("rb", buffering=0)  # noqa: SIM115  # closed with what reads it
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
    return file, base.offset
