"""Looking at what was learned.

`evaluate_run` needs torch and is imported when it is first used: a diagnosis needs no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cadr.inference.evaluation import evaluate_run

__all__ = ["evaluate_run"]


def __getattr__(name: str) -> Any:
    if name != "evaluate_run":
        raise AttributeError(f"module 'cadr.inference' has no attribute {name!r}")
    from cadr.inference.evaluation import evaluate_run

    return evaluate_run
