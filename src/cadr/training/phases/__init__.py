"""What a method does beside its steps: one small protocol, `Phase`, and a file for each phase there is.

A new one is a class and a line in `phases_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from cadr.algorithms import Algorithm, Refreshing
from cadr.config import Config
from cadr.training.feed import Inputs
from cadr.training.phases.base import Generation, Phase, Stretch
from cadr.training.phases.between_steps import LearningViews, Refreshes
from cadr.training.phases.class_swap import Renaming
from cadr.training.phases.pretraining import Pretraining
from cadr.training.phases.self_training import Generations
from cadr.training.phases.share_estimates import ShareEstimates

__all__ = ["Generation", "Phase", "Stretch", "phases_of", "step_phases"]


def phases_of(config: Config, inputs: Inputs, class_names: Sequence[str], model: nn.Module) -> list[Phase]:
    """Those of a run, in the order in which they are asked."""
    algorithm, steps = config.algorithm, config.training.steps
    found = step_phases(algorithm, config.views, steps)
    if config.training.pretrain and config.training.continue_from is None:
        found.append(Pretraining(config, inputs, model))
    if config.training.renaming:
        found.append(Renaming(config, inputs, class_names, model))
    if algorithm.estimates_target:
        found.append(ShareEstimates(config, inputs, model))
    if algorithm.generations > 1:
        found.append(Generations(algorithm, steps, inputs, model))
    return found


def step_phases(algorithm: Algorithm, views: Any, steps: int) -> list[Phase]:
    """Those without which a step would not be the method's."""
    found: list[Phase] = [Refreshes(algorithm, steps)] if isinstance(algorithm, Refreshing) else []
    return [*found, LearningViews()] if getattr(views, "learns", False) else found
