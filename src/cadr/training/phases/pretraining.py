"""`--pretrain N`: N steps without any label before the first one, and names that spread over what they found.

The network first learns which views show the same example (`algorithms/simclr.py`). In its features every label then
spreads over the graph of nearest neighbours, each class with the same mass however many labels it has. The last layer
is fitted to what the rows so become, and P̂ begins with their mean. A class with one label begins as a neighbourhood and
not as one picture that is learned by heart.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cadr.algorithms.simclr import SimCLR
from cadr.config import Config
from cadr.errors import ConfigError
from cadr.models.feature_hooks import arriving, class_head
from cadr.training.auxiliary_head import MARK, TwoHeads, widen
from cadr.training.feed import Inputs
from cadr.training.network import logits_of
from cadr.training.phases.base import Phase
from cadr.training.record import Record, listed, rounded

if TYPE_CHECKING:
    from cadr.training.step import Step

_MOST_ROWS = 10_000  # unlabelled rows in the graph
_PENALTY = 1e-3  # on the last layer, for standardised features
_TOGETHER = 20  # steps between two uploads of rows


class Pretraining(Phase):
    """What comes before the first step of a run that begins; a run that is continued has it behind it."""

    def __init__(self, config: Config, inputs: Inputs, model: nn.Module) -> None:
        self.config, self.inputs = config, inputs
        self.head = class_head(model, inputs.num_classes)
        if not self.head or any(isinstance(module, TwoHeads) for module in model.modules()):
            raise ConfigError(
                f"pretrain fits the last layer anew, a linear one with {inputs.num_classes} outputs and no second "
                "one beside it, which this model and method do not have; leave pretrain out, or use others."
            )

    def begin(self, step: Step, stop: Callable[[], bool]) -> list[Record]:
        learned = self._learn(step, stop)
        if learned is None:
            return []
        state, inputs = step.state, self.inputs
        state.model.load_state_dict({name: value for name, value in learned.items() if MARK not in name})
        rows, features = self._features(state.model, step.half)
        found = spread(features, inputs.labels.cpu()[rows], inputs.num_classes)
        head = state.model.get_submodule(self.head)
        assert isinstance(head, nn.Linear)
        fit(head, features, found)
        with torch.no_grad():
            state.average.copy_(state.weights)
            state.prior.copy_(found.mean(0))
            if "prior" in state.method:
                state.method["prior"].copy_(state.prior)
        return [self._record(rows, found)]

    def _learn(self, step: Step, stop: Callable[[], bool]) -> dict[str, Tensor] | None:
        """The averaged weights after the steps without labels; None where somebody asked to stop."""
        from cadr.training.step import Step as Steps

        config, inputs = self.config, self.inputs
        method, steps = SimCLR(), config.training.pretrain
        learner = widen(copy.deepcopy(step.state.model), inputs.num_classes, method.auxiliary, config.training.seed)
        training = dataclasses.replace(config.training, steps=steps)
        without = Steps(learner, method, config.views, inputs, config.optimiser, training, _TOGETHER)
        while without.done < steps:
            without.advance(min(_TOGETHER, steps - without.done), stop)
            if stop():
                return None
        return without.state.average_model.state_dict()

    def _features(self, model: nn.Module, half: bool) -> tuple[Tensor, Tensor]:
        """Labelled rows and some others, and what arrives at the last layer, (n, d)."""
        inputs = self.inputs
        generator = torch.Generator().manual_seed(self.config.training.seed)
        stream, labelled = inputs.stream.cpu(), inputs.labelled.cpu()
        others = stream[~torch.isin(stream, labelled)]
        rows = torch.cat([labelled, others[torch.randperm(len(others), generator=generator)[:_MOST_ROWS]]])
        examples = inputs.examples[rows.to(inputs.examples.device)]
        model.eval()
        with torch.no_grad(), arriving([model.get_submodule(self.head)]) as noted:
            for _ in logits_of(model, inputs, examples, half):
                pass
        model.train()
        return rows, torch.cat(noted[0])

    def _record(self, rows: Tensor, found: Tensor) -> Record:
        truth = self.inputs.truth.cpu()[rows]
        unlabelled = (self.inputs.labels.cpu()[rows] < 0) & (truth >= 0)
        right = (found.argmax(1) == truth)[unlabelled].double().mean()
        said = "" if not unlabelled.any() else f", {100 * right:.1f} % of them rightly"
        return {
            "kind": "pretraining",
            "step": 0,
            "steps": self.config.training.pretrain,
            "right": rounded(float(100 * right)) if unlabelled.any() else None,
            "prior": listed(found.mean(0)),
            "message": f"After {self.config.training.pretrain} steps without labels, these have spread to "
            f"{int((self.inputs.labels.cpu()[rows] < 0).sum()):,} rows by their neighbours{said}.",
        }


def spread(features: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """(n, C) class probabilities of all rows, from the labels (n,) there are, −1 where missing."""
    from cadr.ensemble.propagation import Graph, Propagation

    graph = Graph.of(_standardised(features)[0].cpu().numpy(), Propagation.neighbours)
    return torch.from_numpy(np.exp(Propagation().spread(graph, labels.numpy(), num_classes))).float()


def fit(head: nn.Linear, features: Tensor, probabilities: Tensor) -> None:
    """Multinomial regression of soft labels on features, in which every class weighs the same."""
    x, centre, scale = _standardised(features.double())
    y = probabilities.to(x)
    y = y / (y.shape[1] * y.sum(0))
    w = torch.zeros(y.shape[1], x.shape[1] + 1, dtype=x.dtype, device=x.device, requires_grad=True)
    solver = torch.optim.LBFGS([w], max_iter=100, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        solver.zero_grad()
        logged = F.log_softmax(F.linear(x, w[:, :-1], w[:, -1]), dim=1)
        value = _PENALTY * w[:, :-1].square().sum() - (y * logged).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    solver.step(objective)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        kernel = w[:, :-1] / scale
        head.weight.copy_(kernel)
        head.bias.copy_(w[:, -1] - kernel @ centre)


def _standardised(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    centre, scale = x.mean(0), x.std(0, correction=0)
    scale = torch.where(scale > 0, scale, 1.0)
    return (x - centre) / scale, centre, scale
