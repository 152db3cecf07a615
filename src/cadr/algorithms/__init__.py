"""One paper, one file; one dict from name to dataclass."""

from __future__ import annotations

from cadr.algorithms.anchoring import AnchoredCADR, AnchoredCAPCAI, Anchoring
from cadr.algorithms.base import Algorithm, Batch, Facts, Model, Output, Refreshing, State, Terms, forward
from cadr.algorithms.cadr import CADR, CAI, CAP, CAPCAI
from cadr.algorithms.cap_freematch import CAPFreeMatch, ResampledCAPFreeMatch
from cadr.algorithms.crest import CReST, CReSTPlus
from cadr.algorithms.darp import DARP
from cadr.algorithms.dash import DASH
from cadr.algorithms.fixmatch import AlignedFixMatch, FixMatch
from cadr.algorithms.flexmatch import FlexMatch
from cadr.algorithms.freematch import FreeMatch
from cadr.algorithms.logit_adjustment import LogitAdjustedCADR, LogitAdjustment
from cadr.algorithms.mixmatch import MixMatch
from cadr.algorithms.pi_model import PiModel
from cadr.algorithms.prg import PRG, PRGLast
from cadr.algorithms.remixmatch import ReMixMatch
from cadr.algorithms.resampling import ResampledCADR, Resampling
from cadr.algorithms.reweighting import ReweightedCADR, Reweighting
from cadr.algorithms.simpro import SimPro
from cadr.algorithms.softmatch import SoftMatch
from cadr.algorithms.supervised import Supervised

ALGORITHMS: dict[str, type[Algorithm]] = {
    "supervised": Supervised,
    "pi_model": PiModel,
    "mixmatch": MixMatch,
    "remixmatch": ReMixMatch,
    "fixmatch": FixMatch,
    "cap": CAP,
    "cai": CAI,
    "cap_cai": CAPCAI,
    "cadr": CADR,
    "alignment": AlignedFixMatch,
    "crest": CReST,
    "crest_plus": CReSTPlus,
    "reweighting": Reweighting,
    "resampling": Resampling,
    "logit_adjustment": LogitAdjustment,
    "dash": DASH,
    "darp": DARP,
    "flexmatch": FlexMatch,
    "freematch": FreeMatch,
    "softmatch": SoftMatch,
    "prg": PRG,
    "prg_last": PRGLast,
    "simpro": SimPro,
    "cadr_reweighting": ReweightedCADR,
    "cadr_resampling": ResampledCADR,
    "cadr_logit_adjustment": LogitAdjustedCADR,
    "anchoring": Anchoring,
    "cap_cai_anchoring": AnchoredCAPCAI,
    "cadr_anchoring": AnchoredCADR,
    "cap_freematch": CAPFreeMatch,
    "cap_freematch_resampling": ResampledCAPFreeMatch,
}

__all__ = [
    "ALGORITHMS", "CADR", "CAI", "CAP", "CAPCAI", "DARP", "DASH", "PRG", "Algorithm", "AlignedFixMatch",
    "AnchoredCADR", "AnchoredCAPCAI", "Anchoring", "Batch", "CAPFreeMatch", "CReST", "CReSTPlus", "Facts", "FixMatch",
    "FlexMatch", "FreeMatch", "LogitAdjustedCADR", "LogitAdjustment", "MixMatch", "Model", "Output", "PRGLast",
    "PiModel", "ReMixMatch", "Refreshing", "ResampledCADR", "ResampledCAPFreeMatch", "Resampling", "ReweightedCADR",
    "Reweighting", "SimPro", "SoftMatch", "State", "Supervised", "Terms", "forward",
]  # fmt: skip
