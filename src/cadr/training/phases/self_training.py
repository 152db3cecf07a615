"""Generations: training starts afresh several times in one run, each time on the given labels and predicted ones."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from cadr.algorithms import Algorithm
from cadr.data.pool import MISSING
from cadr.errors import CheckpointError, ConfigError
from cadr.training.feed import Inputs
from cadr.training.network import logits_of
from cadr.training.phases.base import Generation, Phase, Stretch
from cadr.training.record import Record, listed
from cadr.utils import ranks

if TYPE_CHECKING:
    from cadr.training.step import Step

_NUMBER, _ADOPTED, _INITIAL = "generation.number", "generation.adopted", "initial."


def share_out(count: int, steps: int) -> list[Generation]:
    """`count` generations that share the steps as evenly as whole steps allow."""
    if not 1 <= count <= steps:
        raise ConfigError(f"generations must lie between 1 and the number of steps, {steps}, not {count}.")
    bounds = [round(steps * i / count) for i in range(count + 1)]
    return [Generation(i, start, stop) for i, (start, stop) in enumerate(itertools.pairwise(bounds))]


class Generations(Phase):
    """Which generation a run is in, on which labels, and what the next one begins with."""

    def __init__(self, algorithm: Algorithm, steps: int, given: Inputs, model: nn.Module) -> None:
        self.algorithm, self.given, self.model = algorithm, given, model
        self.all = share_out(algorithm.generations, steps)
        self.current = self.all[0]
        self.adopted = torch.full_like(given.labels, MISSING)
        self.initial = {name: value.clone() for name, value in model.state_dict().items()}

    @property
    def stops(self) -> set[int]:
        return {generation.stop for generation in self.all}

    def at_stop(self, step: Step) -> list[Record]:
        over = step.done == self.current.stop < self.all[-1].stop
        return [self.advance(step.state.average_model, step.half)] if over else []

    def stretch(self, now: Stretch) -> Stretch:
        return now if now.generation == self.current else Stretch(self.inputs(), self.current)

    def inputs(self) -> Inputs:
        """The data with the labels of this generation."""
        if self.current.number == 0:
            return self.given
        labels = torch.where(self.given.labels == MISSING, self.adopted, self.given.labels)
        return dataclasses.replace(self.given, labels=labels, labelled=torch.nonzero(labels != MISSING).squeeze(1))

    def advance(self, averaged: nn.Module, half: bool) -> Record:
        """Choose the labels of the next generation and put the model back to where all of them begin.

        They are chosen anew each time: what an earlier generation adopted counts as unlabelled again.
        """
        given, before = self.given, self.current
        rows = given.stream[:][given.labels[given.stream[:]] == MISSING]
        self.adopted = torch.full_like(given.labels, MISSING)
        if len(rows):
            facts = given.facts(before.stop - before.start, before.number)

            def chosen() -> Tensor:
                logits = torch.cat(list(logits_of(averaged, given, given.examples[rows], half)))
                return self.algorithm.enlarge(logits.softmax(1).cpu(), facts)

            self.adopted[rows] = ranks.from_first(chosen).to(self.adopted)
        self.current = self.all[before.number + 1]
        self.model.load_state_dict(self.initial)
        return self._record()

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint holds of it."""
        named = {_NUMBER: torch.tensor(self.current.number), _ADOPTED: self.adopted}
        return named | {_INITIAL + name: value for name, value in self.initial.items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on where a checkpoint's tensors stand."""
        expected = {name: tensor.shape for name, tensor in self.tensors().items()}
        if expected != {name: tensor.shape for name, tensor in tensors.items()}:
            raise CheckpointError("The checkpoint is of another model or algorithm; start a new run in another folder.")
        self.current = self.all[int(tensors[_NUMBER])]
        self.adopted = tensors[_ADOPTED].to(self.adopted)
        self.initial = {name: tensors[_INITIAL + name] for name in self.initial}

    def _record(self) -> Record:
        """What was adopted, by class, and how much of it is right where the truth is known."""
        classes, chosen = self.given.num_classes, self.adopted != MISSING
        labels, truth = self.adopted[chosen].cpu(), self.given.truth[chosen].cpu()
        counts, known = (torch.bincount(part, minlength=classes) for part in (labels, labels[truth != MISSING]))
        right = torch.bincount(labels[labels == truth], minlength=classes)
        return {
            "kind": "generation",
            "step": self.current.start,
            "generation": self.current.number,
            "adopted": counts.tolist(),
            "precision": listed(100.0 * right.double() / known.double()),
            "message": f"Generation {self.current.number + 1} of {len(self.all)}: training starts afresh, with "
            f"{len(labels)} predicted labels beside the given ones.",
        }
