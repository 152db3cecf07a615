"""Classes that bear each other's names are given their own, in the middle of training.

How that is found out: `estimate/label_swap.py`. The features are those of the network's middle, the probabilities those
of the averaged model. To put names right is to exchange rows of the last layer; training goes on, and learns the
few labelled examples that now contradict it by heart again.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cadr.config import Config
from cadr.data.pool import MISSING
from cadr.errors import ConfigError
from cadr.estimate.label_swap import exchanged, fit_of_names
from cadr.models.feature_hooks import arriving, behind_middle, class_head
from cadr.training.device_data import Inputs
from cadr.training.network import logits_of
from cadr.training.record import Record
from cadr.training.step import Step

_MOST_SEEN = 100  # labelled examples of a class that are asked
_MOST_OTHERS = 10_000  # unlabelled examples among which neighbours are looked for


class Renaming:
    """When names are looked at, and the examples that are asked, chosen once by the run's seed."""

    def __init__(self, config: Config, inputs: Inputs, class_names: Sequence[str], model: nn.Module) -> None:
        self.inputs, self.class_names = inputs, class_names
        self.points = set[int]()  # the steps after which names are looked at
        if not config.training.renaming:
            return
        _check(model, inputs.num_classes)
        # not at the end: labelled examples that contradict their new name have to be learned again
        self.points = {config.training.steps * quarter // 4 for quarter in (1, 2, 3)} - {0}
        generator = torch.Generator().manual_seed(config.training.seed)
        stream, labels = inputs.stream.cpu(), inputs.labels.cpu()
        without = stream[labels[stream] == MISSING]
        self.others = without[torch.randperm(len(without), generator=generator)[:_MOST_OTHERS]]
        labelled = inputs.labelled.cpu()
        labelled = labelled[torch.randperm(len(labelled), generator=generator)]
        self.seen = torch.cat([labelled[labels[labelled] == c][:_MOST_SEEN] for c in range(inputs.num_classes)])

    def apply(self, step: Step) -> list[Record]:
        """Exchange names that are exchanged, if it is time to ask, and say so."""
        if step.done not in self.points or not len(self.others):
            return []
        seen, _ = self._look(step, self.seen)
        others, predicted = self._look(step, self.others)
        labels = self.inputs.labels[self.seen.to(self.inputs.labels.device)]
        outputs, pairs = exchanged(fit_of_names(seen, labels, others, predicted), len(labels))
        if not pairs:
            return []
        rename(step, outputs)
        named = [[self.class_names[c] for c in pair] for pair in pairs]
        pairs_said = ", ".join(" and ".join(pair) for pair in named)
        message = (
            f"At step {step.done} the names of {pairs_said} were exchanged: each was borne by what surrounds the "
            "other's labelled examples."
        )
        return [{"kind": "renaming", "step": step.done, "exchanged": named, "message": message}]

    def _look(self, step: Step, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """Features (n, d) of each layer looked at, and probabilities (n, C), of the averaged model."""
        inputs = self.inputs
        with arriving(behind_middle(step.average_model)) as features:
            examples = inputs.examples[rows.to(inputs.examples.device)]
            logits = list(logits_of(step.average_model, inputs, examples, step.half))
        return [torch.cat(layer) for layer in features], torch.cat(logits).softmax(1)


def rename(step: Step, outputs: Tensor) -> None:
    """Let the network's output y, and what is known of its predictions, be what output outputs[y] and its were."""
    head = class_head(step.model, step.inputs.num_classes)
    moved = {f"{kind}.{head}.{part}" for kind in ("weight", "velocity", "average") for part in ("weight", "bias")}
    moved |= {f"algorithm.{name}" for name in step.algorithm.renamed} | {"prior", "thresholds"}
    outputs = outputs.to(step.device)
    with torch.no_grad():
        for name, tensor in step.tensors().items():
            if name in moved:
                tensor.copy_(tensor[outputs])


def _check(model: nn.Module, num_classes: int) -> None:
    """Whether the network shows its middle, and ends in the layer whose rows are the classes."""
    head = class_head(model, num_classes)
    if not behind_middle(model) or not head or list(model.modules())[-1] is not model.get_submodule(head):
        raise ConfigError(
            "renaming looks at the middle of a network and exchanges rows of its last layer; it knows "
            "our own networks, and nn.Sequential of layers that end in a linear one; leave it out, or use one of them."
        )
