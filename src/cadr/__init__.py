"""Learning when labels are missing not at random: how biased they are, and a classifier in spite of it.

Names are imported when they are first used: losses need torch alone, training torch, numpy and pillow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cadr import functional
    from cadr.api import Run, diagnose, load, train
    from cadr.classifier import CADRClassifier
    from cadr.data import Pool, open_data
    from cadr.errors import CadrError, CadrWarning
    from cadr.scoring import on_labelled

__version__ = "0.2.0"
__all__ = [
    "CADRClassifier",
    "CadrError",
    "CadrWarning",
    "Pool",
    "Run",
    "__version__",
    "diagnose",
    "functional",
    "load",
    "on_labelled",
    "open_data",
    "train",
]

_HOMES = {
    "CADRClassifier": "cadr.classifier",
    "Run": "cadr.api",
    "CadrError": "cadr.errors",
    "CadrWarning": "cadr.errors",
    "Pool": "cadr.data",
    "diagnose": "cadr.api",
    "load": "cadr.api",
    "on_labelled": "cadr.scoring",
    "open_data": "cadr.data",
    "train": "cadr.api",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "functional":
        return importlib.import_module("cadr.functional")
    raise AttributeError(f"module 'cadr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
