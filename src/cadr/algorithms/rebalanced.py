"""Re-balancing of the labelled rows, as modifiers of any method that imputes: of FixMatch and of CADR alike.

A modifier is a class over `Imputation` that changes the supervised term, or how labelled rows are drawn, and nothing
else; `class Reweighting(Reweighted, FixMatch)` and `class ReweightedCADR(Reweighted, CADR)` are then whole methods.
"""

from __future__ import annotations

from dataclasses import dataclass

from cadr.algorithms.imputation import Imputation
from cadr.errors import ConfigError


@dataclass(frozen=True)
class Rebalanced(Imputation):
    """What all re-balancing has in common: it must not meet labelled rows that are weighted already."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self, "propensity", "paper") == "class":
            raise ConfigError(
                "propensity 'class' weights the labelled rows already: take plain cadr, or propensity 'paper'."
            )
