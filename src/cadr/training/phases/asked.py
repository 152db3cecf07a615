"""Examples that a phase asks the averaged model about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cadr.data.pool import MISSING
from cadr.models.feature_hooks import arriving, behind_middle
from cadr.training.feed import Inputs
from cadr.training.network import logits_of

if TYPE_CHECKING:
    from cadr.training.step import Step


class Asked:
    """So many labelled examples of a class and so many unlabelled ones at most, chosen once by the run's seed."""

    def __init__(self, inputs: Inputs, seed: int, most_seen: int, most_others: int) -> None:
        self.inputs = inputs
        generator = torch.Generator().manual_seed(seed)
        stream, labels = inputs.stream.cpu(), inputs.labels.cpu()
        without = stream[labels[stream] == MISSING]
        self.without = len(without)
        self.others = without[torch.randperm(len(without), generator=generator)[:most_others]]
        labelled = inputs.labelled.cpu()
        labelled = labelled[torch.randperm(len(labelled), generator=generator)]
        self.seen = torch.cat([labelled[labels[labelled] == c][:most_seen] for c in range(inputs.num_classes)])

    def labels(self) -> Tensor:
        """Of `seen`."""
        return self.inputs.labels[self.seen.to(self.inputs.labels.device)]

    def look(self, step: Step, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """Features (n, d) of each layer behind the network's middle, and probabilities (n, C)."""
        inputs, model = self.inputs, step.state.average_model
        with arriving(behind_middle(model)) as features:
            examples = inputs.examples[rows.to(inputs.examples.device)]
            logits = list(logits_of(model, inputs, examples, step.half))
        return [torch.cat(layer) for layer in features], torch.cat(logits).softmax(1)
