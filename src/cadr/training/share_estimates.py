"""`--target-prior estimated`: class shares are estimated while training goes on, and become what it aims at.

How: `estimate/running_shares.py`. Until three eighths of the run the classes are presumed to be equally frequent: a
network that knows little confuses what it has few labels of, and told its own confusion it would learn that. From then
on every sixteenth of the run the target is what the intervals allow that is nearest to equal shares, so that a balanced
population stays what it is.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from cadr.config import Config
from cadr.data.pool import MISSING
from cadr.errors import ConfigError
from cadr.estimate.label_shift import Floats, Labels
from cadr.estimate.label_swap import around
from cadr.estimate.running_shares import not_refuted, running_shares
from cadr.models.feature_hooks import arriving, behind_middle
from cadr.training.device_data import Inputs
from cadr.training.network import logits_of
from cadr.training.record import Record
from cadr.training.schedule import listed
from cadr.training.step import Step

_POINTS = [sixteenth / 16 for sixteenth in range(6, 16)]  # of the run
_MOST_SEEN = 100  # labelled examples of a class that are asked
_MOST_OTHERS = 5_000  # unlabelled examples, which are each other's neighbours
_NEIGHBOURS = 5  # at least


class ShareEstimates:
    """When shares are estimated, and from which examples, chosen once by the run's seed."""

    def __init__(self, config: Config, inputs: Inputs, model: nn.Module) -> None:
        self.inputs, self.seed = inputs, config.training.seed
        self.points = set[int]()  # the steps after which shares are estimated
        if not config.algorithm.estimates_target:
            return
        if not behind_middle(model):
            raise ConfigError(
                "target_prior 'estimated' looks at the middle of a network; it knows our own networks, and "
                "nn.Sequential of layers that end in a linear one; give class shares, or use one of them."
            )
        self.points = {int(config.training.steps * point) for point in _POINTS} - {0}
        generator = torch.Generator().manual_seed(self.seed)
        stream, labels = inputs.stream.cpu(), inputs.labels.cpu()
        without = stream[labels[stream] == MISSING]
        self.without = len(without)
        self.others = without[torch.randperm(len(without), generator=generator)[:_MOST_OTHERS]]
        labelled = inputs.labelled.cpu()
        labelled = labelled[torch.randperm(len(labelled), generator=generator)]
        self.seen = torch.cat([labelled[labels[labelled] == c][:_MOST_SEEN] for c in range(inputs.num_classes)])

    def apply(self, step: Step) -> list[Record]:
        """Aim at what is estimated, if it is time to, and say so."""
        if step.done not in self.points or not len(self.others):
            return []
        labels = self.inputs.labels[self.seen.to(self.inputs.labels.device)].cpu().numpy()
        random = np.random.default_rng((self.seed, step.done))
        found = running_shares(*self._around(step, labels), random)
        counts = self.inputs.counts.double().numpy()
        rows = self.without + counts.sum()
        equal = np.clip(rows / len(counts) - counts, 1.0, None)  # rows without a label, if classes are equally frequent
        told = (counts + self.without * not_refuted(equal / equal.sum(), found.interval)) / rows
        with torch.no_grad():
            for name, value in step.algorithm.towards(torch.from_numpy(told).float()).items():
                step.state[name].copy_(value)
        return [
            {
                "kind": "shares",
                "step": step.done,
                "share": listed(100.0 * torch.from_numpy(found.share)),
                "low": listed(100.0 * torch.from_numpy(found.interval[:, 0])),
                "high": listed(100.0 * torch.from_numpy(found.interval[:, 1])),
                "doubly_robust": listed(100.0 * torch.from_numpy(found.doubly_robust)),
                "target": listed(100.0 * torch.from_numpy(told)),
            }
        ]

    @torch.no_grad()
    def _around(self, step: Step, labels: Labels) -> tuple[Floats, Labels, Floats]:
        """The neighbours' mean predictions, the mean over layers, of labelled and of unlabelled examples."""
        seen, _ = self._look(step, self.seen)
        others, predicted = self._look(step, self.others)
        pairs = list(zip(seen, others, strict=True))
        labelled = torch.stack([around(few, many, predicted, _NEIGHBOURS) for few, many in pairs]).mean(0)
        unlabelled = torch.stack([around(many, many, predicted, _NEIGHBOURS, itself=False) for _, many in pairs]).mean(
            0
        )
        return labelled.double().cpu().numpy(), labels, unlabelled.double().cpu().numpy()

    def _look(self, step: Step, rows: Tensor) -> tuple[list[Tensor], Tensor]:
        """Features (n, d) of each layer looked at, and probabilities (n, C), of the averaged model."""
        inputs = self.inputs
        with arriving(behind_middle(step.average_model)) as features:
            examples = inputs.examples[rows.to(inputs.examples.device)]
            logits = list(logits_of(step.average_model, inputs, examples, step.half))
        return [torch.cat(layer) for layer in features], torch.cat(logits).softmax(1)
