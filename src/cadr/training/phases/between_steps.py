"""Phases that belong to single steps: state that is refreshed every so many of them, and views that learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from cadr.algorithms import Refreshing
from cadr.training.feed import PROBE
from cadr.training.network import call
from cadr.training.phases.base import Phase
from cadr.utils import random_numbers, ranks

if TYPE_CHECKING:
    from cadr.training.step import Step


class Refreshes(Phase):
    """What an algorithm does to its state between steps, every so many of them."""

    def __init__(self, algorithm: Refreshing, steps: int) -> None:
        self.algorithm, self.steps = algorithm, steps

    def after_step(self, step: Step) -> None:
        if step.done % self.algorithm.refresh_every:
            return
        state = step.state.method
        with torch.no_grad():
            refreshed = self.algorithm.refresh(state, step.done, self.steps)
            if ranks.world() > 1:
                refreshed = ranks.agreed({name: value.cpu() for name, value in refreshed.items()})
            for name, value in refreshed.items():
                if value is not state[name]:
                    state[name].copy_(value)


class LearningViews(Phase):
    """Views that adapt try themselves on the labelled examples, and see what the averaged model makes of them."""

    steers_views = True

    def in_step(self, step: Step) -> None:
        inputs, views, state = step.inputs, step.views, step.state
        labelled, position = step.feed.rows.of(state.step)
        key = random_numbers.key(step.training.seed, state.step, PROBE)
        probes, policies = views.probe(step.feed.examples(labelled, position)[0], key)
        model = state.average_model
        predicted = call(model, inputs.ready(probes, model, step.dtype), step.half).softmax(1)
        learned = views.update(state.views, policies, predicted, inputs.labels[labelled])
        for name, value in learned.items():
            state.views[name].copy_(value)
