"""How a tensor enters a kernel, and what every launch needs.

Tensors are NHWC bf16. A `table` holds one batch norm's coefficients, fp32 (7, C); the kernels' sources say which.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

KERNELS = Path(__file__).parent / "cuda"
TABLE_ROWS = 7
Read = Literal["PLAIN", "ACTIVATED", "GRADIENT", "JOINED", "IMAGE"]


@cache
def multiprocessors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@cache
def sums(device: torch.device) -> tuple[Tensor, Tensor]:
    """Totals (2, channels) and a counter, which every kernel finds and leaves at zero."""
    return torch.zeros(2048, dtype=torch.float64, device=device), torch.zeros(1, dtype=torch.int32, device=device)


def flags(*values: bool) -> str:
    """As arguments of a template."""
    return ",".join("true" if value else "false" for value in values)


@dataclass(frozen=True)
class Source:
    """A tensor and how it is read: plain, through batch norm and activation, or as batch norm's gradient (joined: with
    the gradient that came round by the skip).

    A convolution can keep what it has rebuilt on the way in: `rebuilt` gives that, to be read plainly from then on.
    """

    how: Read
    tensor: Tensor
    table: Tensor | None = None
    before: Tensor | None = None  # z, where `tensor` is the gradient behind z's activation
    skip: Tensor | None = None  # where joined

    @cached_property
    def rebuilt(self) -> Tensor:
        return self.tensor if self.how in ("PLAIN", "IMAGE") else torch.empty_like(self.tensor)

    @property
    def kept(self) -> Source:
        """What a convolution has kept of this, as it is read from then on."""
        return Source("PLAIN", self.rebuilt)

    def arguments(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Tensor, z, skip, table; what is not used is any valid pointer."""
        before, skip, table = (self.tensor if each is None else each for each in (self.before, self.skip, self.table))
        return self.tensor, before, skip, table
