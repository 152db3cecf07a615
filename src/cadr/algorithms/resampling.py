"""Re-sampling: labelled batches hold all classes alike, so that rows of rare classes come more often."""

from __future__ import annotations

from dataclasses import dataclass

from cadr.algorithms.cadr import CADR
from cadr.algorithms.fixmatch import FixMatch
from cadr.algorithms.imputation import Rebalanced
from cadr.utils.options import option


@dataclass(frozen=True)
class Resampled(Rebalanced):
    """The losses are untouched; what changes is which labelled rows the training step draws."""

    balanced_labels: bool = option(True, "Draw labelled rows class by class, each class as often as any other.")


@dataclass(frozen=True)
class Resampling(Resampled, FixMatch):
    """FixMatch on re-sampled labelled rows: the paper's row."""


@dataclass(frozen=True)
class ResampledCADR(Resampled, CADR):
    """CADR on re-sampled labelled rows."""
