"""One paper, one file; one dict from name to dataclass."""

from __future__ import annotations

from cadr.algorithms.base import Algorithm, Batch, Facts, Model, Output, State, Terms, forward
from cadr.algorithms.cadr import CADR, CAI, CAP, CAPCAI
from cadr.algorithms.fixmatch import FixMatch
from cadr.algorithms.supervised import Supervised

ALGORITHMS: dict[str, type[Algorithm]] = {
    "supervised": Supervised,
    "fixmatch": FixMatch,
    "cap": CAP,
    "cai": CAI,
    "cap_cai": CAPCAI,
    "cadr": CADR,
}

__all__ = [
    "ALGORITHMS", "CADR", "CAI", "CAP", "CAPCAI", "Algorithm", "Batch", "Facts", "FixMatch", "Model", "Output", "State",
    "Supervised", "Terms", "forward",
]  # fmt: skip
