"""Run a configuration to its end, yielding records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torch import nn

from cadr.config import Config
from cadr.data.pool import Pool
from cadr.train.record import Record


def train(
    config: Config, out: Path | str, pool: Pool | None = None, model: nn.Module | None = None
) -> Iterator[Record]:
    """Train, or go on training, the run in folder `out`; the same call after a kill continues it."""
    raise NotImplementedError
