"""Classes that bear each other's names are given their own, in the middle of training.

How that is found out: `estimate/label_swap.py`. The features are those of the network's middle, the probabilities those
of the averaged model. To put names right is to exchange rows of the last layer; training goes on, and learns the
few labelled examples that now contradict it by heart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from cadr.config import Config
from cadr.errors import ConfigError
from cadr.estimate.label_swap import exchanged, fit_of_names
from cadr.models.feature_hooks import behind_middle, class_head
from cadr.training.feed import Inputs
from cadr.training.phases.asked import Asked
from cadr.training.phases.base import Phase
from cadr.training.record import Record
from cadr.utils import ranks

if TYPE_CHECKING:
    from cadr.training.step import Step

_MOST_SEEN = 100  # labelled examples of a class that are asked
_MOST_OTHERS = 10_000  # unlabelled examples among which neighbours are looked for


class Renaming(Phase):
    """When names are looked at: at quarters of the run."""

    def __init__(self, config: Config, inputs: Inputs, class_names: Sequence[str], model: nn.Module) -> None:
        _check(model, inputs.num_classes)
        self.class_names, self.steps = class_names, config.training.steps
        self.asked = Asked(inputs, config.training.seed, _MOST_SEEN, _MOST_OTHERS)

    @property
    def stops(self) -> set[int]:
        # not at the end: labelled examples that contradict their new name have to be learned again
        return {self.steps * quarter // 4 for quarter in (1, 2, 3)} - {0}

    def at_stop(self, step: Step) -> list[Record]:
        """Exchange names that are exchanged, if it is time to ask, and say so."""
        asked = self.asked
        if step.done not in self.stops or not len(asked.others):
            return []
        outputs, pairs = ranks.from_first(lambda: self._exchanged(step))
        if not pairs:
            return []
        rename(step, outputs)
        named = [[self.class_names[c] for c in pair] for pair in pairs]
        pairs_said = ", ".join(" and ".join(pair) for pair in named)
        message = (
            f"At step {step.done} the swapped labels of {pairs_said} were swapped back: examples around the labelled "
            "ones of each were predicted to be the other."
        )
        return [{"kind": "renaming", "step": step.done, "exchanged": named, "message": message}]

    def _exchanged(self, step: Step) -> tuple[Tensor, list[tuple[int, int]]]:
        asked = self.asked
        seen, _ = asked.look(step, asked.seen)
        others, predicted = asked.look(step, asked.others)
        labels = asked.labels()
        return exchanged(fit_of_names(seen, labels, others, predicted), len(labels))


def rename(step: Step, outputs: Tensor) -> None:
    """Let the network's output y, and what is known of its predictions, be what output outputs[y] and its were."""
    head = class_head(step.state.model, step.inputs.num_classes)
    moved = {f"{kind}.{head}.{part}" for kind in ("weight", "velocity", "average") for part in ("weight", "bias")}
    moved |= {f"algorithm.{name}" for name in step.algorithm.renamed} | {"prior", "thresholds"}
    outputs = outputs.to(step.device)
    with torch.no_grad():
        for name, tensor in step.state.tensors().items():
            if name in moved:
                tensor.copy_(tensor[outputs])


def _check(model: nn.Module, num_classes: int) -> None:
    """Whether the network shows its middle, and ends in the layer whose rows are the classes."""
    head = class_head(model, num_classes)
    if not behind_middle(model) or not head or list(model.modules())[-1] is not model.get_submodule(head):
        raise ConfigError(
            "renaming needs intermediate features and a linear last layer, as our own networks have, and nn.Sequential "
            "of layers that end in a linear one; leave it out, or use one of these."
        )
