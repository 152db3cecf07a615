"""The parameters of a protocol: checked, and in the types that a split file is hashed with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cadr.data.selection import Indices, Selection
from cadr.errors import ProtocolError


@dataclass(frozen=True)
class Protocol:
    """A protocol with its parameters; its fields are flags of the command line."""

    name: ClassVar[str]
    function: ClassVar[Callable[..., Selection]]
    least_gamma_unlabelled: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, self._checked(field.name, getattr(self, field.name)))

    def parameters(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def select(self, labels: Indices, num_classes: int, seed: int) -> Selection:
        """Carry the protocol out on the true labels."""
        chosen = type(self).function(labels, num_classes, seed, **self.parameters())
        if len(chosen.labelled) == 0:
            raise ProtocolError(f"{self.name} with {self.parameters()} leaves no row with a label; raise its numbers")
        return chosen

    def _checked(self, name: str, value: Any) -> Any:
        if name == "labelled_in_stream":
            if not isinstance(value, bool):
                raise ProtocolError(f"{self.name}: {name} is true or false, got {value!r}")
            return value
        if name == "probabilities":
            return tuple(self._number(name, p, 0.0, 1.0) for p in value)
        if name == "gamma_unlabelled":
            return self._number(name, value, self.least_gamma_unlabelled, 1e6)
        if name == "gamma":
            return self._number(name, value, 1.0, 1e6)
        whole = self._number(name, value, 1, 1e9)
        if whole != int(whole):
            raise ProtocolError(f"{self.name}: {name} is a whole number, got {value!r}")
        return int(whole)

    def _number(self, name: str, value: Any, low: float, high: float) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ProtocolError(f"{self.name}: {name} is a number, got {value!r}")
        if not low <= value <= high:
            raise ProtocolError(f"{self.name}: {name} lies between {low:g} and {high:g}, got {value!r}")
        return float(value)
