"""Optimisers by name: a dataclass of settings each, which moves flat tensors of weights in place."""

from cadr.optim.base import Optimiser, Update
from cadr.optim.muon import Muon, averaged_over
from cadr.optim.sgd import SGD

OPTIMISERS: dict[str, type[SGD]] = {"sgd": SGD, "muon": Muon}

__all__ = ["OPTIMISERS", "SGD", "Muon", "Optimiser", "Update", "averaged_over"]
