"""One paper, one file; one dict from name to dataclass."""

from __future__ import annotations

from cadr.algorithms.base import Algorithm, Batch, Facts, Model, Output, Refreshing, State, Terms, forward
from cadr.algorithms.cadr import CADR, CAI, CAP, CAPCAI
from cadr.algorithms.fixmatch import AlignedFixMatch, FixMatch
from cadr.algorithms.supervised import Supervised

ALGORITHMS: dict[str, type[Algorithm]] = {
    "supervised": Supervised,
    "fixmatch": FixMatch,
    "alignment": AlignedFixMatch,
    "cap": CAP,
    "cai": CAI,
    "cap_cai": CAPCAI,
    "cadr": CADR,
}

__all__ = [
    "ALGORITHMS", "CADR", "CAI", "CAP", "CAPCAI", "Algorithm", "AlignedFixMatch", "Batch", "Facts", "FixMatch", "Model",
    "Output", "Refreshing", "State", "Supervised", "Terms", "forward",
]  # fmt: skip
