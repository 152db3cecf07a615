"""`--target-prior estimated`: class shares are estimated while training goes on, and become what it aims at.

How: `estimate/running_shares.py`. Until three eighths of the run the classes are presumed to be equally frequent: a
network that knows little confuses what it has few labels of, and told its own confusion it would learn that. From then
on every sixteenth of the run the target is what the intervals allow that is nearest to equal shares, so that a balanced
population stays what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from cadr.config import Config
from cadr.data.pool import MISSING
from cadr.errors import ConfigError
from cadr.estimate.label_shift import Floats, Labels
from cadr.estimate.label_swap import around
from cadr.estimate.running_shares import not_refuted, running_shares
from cadr.models.feature_hooks import behind_middle
from cadr.training.feed import Inputs
from cadr.training.phases.asked import Asked
from cadr.training.phases.base import Phase
from cadr.training.record import Record, listed
from cadr.utils import ranks

if TYPE_CHECKING:
    from cadr.training.step import Step

_POINTS = [sixteenth / 16 for sixteenth in range(6, 16)]  # of the run
_MOST_SEEN = 100  # labelled examples of a class that are asked
_MOST_OTHERS = 5_000  # unlabelled examples, which are each other's neighbours
_NEIGHBOURS = 5  # at least


class ShareEstimates(Phase):
    """When shares are estimated, and what is aimed at from then on."""

    def __init__(self, config: Config, inputs: Inputs, model: nn.Module) -> None:
        if not behind_middle(model):
            raise ConfigError(
                "target_prior 'estimated' needs intermediate features, as our own networks have, and nn.Sequential of "
                "layers that end in a linear one; give class shares, or use one of these."
            )
        self.inputs, self.seed, self.steps = inputs, config.training.seed, config.training.steps
        self.asked = Asked(inputs, self.seed, _MOST_SEEN, _MOST_OTHERS)

    @property
    def stops(self) -> set[int]:
        return {int(self.steps * point) for point in _POINTS} - {0}

    def at_stop(self, step: Step) -> list[Record]:
        """Aim at what is estimated, if it is time to, and say so."""
        asked = self.asked
        if step.done not in self.stops or not len(asked.others):
            return []
        random = np.random.default_rng((self.seed, step.done))
        labels = asked.labels().cpu().numpy()
        found = ranks.from_first(lambda: running_shares(*self._around(step, labels), random))
        counts = self.inputs.counts.double().numpy()
        rows = asked.without + counts.sum()
        equal = np.clip(rows / len(counts) - counts, 1.0, None)  # rows without a label, if classes are equally frequent
        told = (counts + asked.without * not_refuted(equal / equal.sum(), found.interval)) / rows
        with torch.no_grad():
            for name, value in step.algorithm.towards(torch.from_numpy(told).float()).items():
                step.state.method[name].copy_(value)
        return [
            {
                "kind": "shares",
                "step": step.done,
                "share": listed(100.0 * torch.from_numpy(found.share)),
                "low": listed(100.0 * torch.from_numpy(found.interval[:, 0])),
                "high": listed(100.0 * torch.from_numpy(found.interval[:, 1])),
                "doubly_robust": listed(100.0 * torch.from_numpy(found.doubly_robust)),
                "target": listed(100.0 * torch.from_numpy(told)),
                **self._truth(),
            }
        ]

    def _truth(self) -> Record:
        """The classes' shares among the unlabelled rows, where a protocol took their labels away."""
        inputs = self.inputs
        truth = inputs.truth[inputs.stream[:][inputs.labels[inputs.stream[:]] == MISSING]]
        if (truth == MISSING).any():
            return {}
        return {"truth": listed(100.0 * torch.bincount(truth, minlength=inputs.num_classes).double() / len(truth))}

    @torch.no_grad()
    def _around(self, step: Step, labels: Labels) -> tuple[Floats, Labels, Floats]:
        """The neighbours' mean predictions, the mean over layers, of labelled and of unlabelled examples."""
        seen, _ = self.asked.look(step, self.asked.seen)
        others, predicted = self.asked.look(step, self.asked.others)
        pairs = list(zip(seen, others, strict=True))
        labelled = torch.stack([around(few, many, predicted, _NEIGHBOURS) for few, many in pairs]).mean(0)
        alone = [around(many, many, predicted, _NEIGHBOURS, itself=False) for _, many in pairs]
        return labelled.double().cpu().numpy(), labels, torch.stack(alone).mean(0).double().cpu().numpy()
