"""A fitted ensemble as one module: standardised rows in, logarithms of class probabilities out.

Its parts are rebuilt from the names and shapes of its buffers alone, so that a checkpoint of tensors is all of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from cadr.ensemble.forest import ForestModule
from cadr.ensemble.logistic import LinearModule
from cadr.ensemble.propagation import NeighboursModule

ROWS = "rows"  # the representation that leaves rows as they are
_KINDS: dict[str, type[nn.Module]] = {"forest": ForestModule, "propagation": NeighboursModule}  # others are linear
_BUFFERS = {
    LinearModule: ("weight", "bias"),
    NeighboursModule: ("points", "shares", "neighbours"),
    ForestModule: ("feature", "threshold", "left", "right", "value", "roots", "depth"),
}


class EnsembleModule(nn.Module):
    """Members are called `learner@representation`."""

    shifts: Tensor  # (M, C) taken from the members' scores: the class shares that they were fitted at
    weights: Tensor  # (B, M)
    offsets: Tensor  # (B, C)
    tilt: Tensor  # (C,)
    handles_precision = True  # half of it would not do for neighbours
    rows_at_once = 2048  # each of which is compared with all points of a graph

    def __init__(
        self,
        representations: Mapping[str, nn.Module],
        members: Mapping[str, nn.Module],
        shifts: Tensor,
        weights: Tensor,
        offsets: Tensor,
        tilt: Tensor,
    ) -> None:
        super().__init__()
        self.representations = nn.ModuleDict(representations)
        self.members = nn.ModuleDict(members)
        for name, tensor in (("shifts", shifts), ("weights", weights), ("offsets", offsets), ("tilt", tilt)):
            self.register_buffer(name, tensor.float())

    def forward(self, x: Tensor) -> Tensor:
        seen = {name: module(x) for name, module in self.representations.items()} | {ROWS: x}
        scores = [
            torch.log_softmax(member(seen[name.partition("@")[2]]) - shift, dim=1)
            for (name, member), shift in zip(self.members.items(), self.shifts, strict=True)
        ]
        drawn = torch.einsum("bm,mnc->bnc", self.weights, torch.stack(scores)) + self.offsets.unsqueeze(1)
        return torch.log(drawn.softmax(2).mean(0) + torch.finfo(torch.float32).tiny) + self.tilt

    def check(self, width: int) -> None:
        """Raise a ValueError where a forest asks for a feature that rows of this width do not have."""
        for name, member in self.members.items():
            if isinstance(member, ForestModule) and len(member.feature):
                kind = name.partition("@")[2]
                seen = width if kind == ROWS else int(self.representations[kind](torch.zeros(1, width)).shape[1])
                if not (int(member.feature.min()) >= 0 and int(member.feature.max()) < seen):
                    raise ValueError("a branch asks for no feature")

    @staticmethod
    def of_tensors(tensors: Mapping[str, Tensor]) -> EnsembleModule:
        """The module whose `state_dict` has these names and tensors."""
        parts: dict[str, dict[str, dict[str, Tensor]]] = {"representations": {}, "members": {}}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            if kind in parts:
                part, _, buffer = rest.rpartition(".")
                parts[kind].setdefault(part, {})[buffer] = tensor
        made = {kind: {name: _part(name, buffers) for name, buffers in found.items()} for kind, found in parts.items()}
        own = {name: tensors[name] for name in ("shifts", "weights", "offsets", "tilt")}
        return EnsembleModule(made["representations"], made["members"], **own)


def unfitted() -> EnsembleModule:
    """One without members, that those of a checkpoint take the place of."""
    nothing = torch.zeros(0, 0)
    return EnsembleModule({}, {}, nothing, nothing, nothing, nothing)


def _part(name: str, buffers: Mapping[str, Tensor]) -> nn.Module:
    kind = _KINDS.get(name.partition("@")[0], LinearModule)
    return kind(**{buffer: buffers[buffer] for buffer in _BUFFERS[kind]})
