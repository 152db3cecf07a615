"""One sitting: what is asked, what was answered, and what can be taken back. Knows nothing of pages or requests."""

from __future__ import annotations

import dataclasses
import shlex
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cadr.errors import ConfigError
from cadr.label import MOST, ROWS
from cadr.label.answers import answers_of
from cadr.label.display import Display
from cadr.label.implied import Implied, implied_sizes
from cadr.label.opened import open_run
from cadr.label.trainer import Trainer
from cadr.report.query import worth_labelling
from cadr.report.runs import command
from cadr.training.warm_start import next_run

EVERY = 10  # answers, after which is said what they imply
GUESSES = 9  # as many as there are keys
_SHOWN = 12  # classes, of which is said what the answers imply
_FIGURES = ("expected", "believed", "implied", "low", "high")

State = dict[str, Any]


@dataclass(frozen=True)
class Given:
    """What was said of one example; without a label, that it was passed over or that nobody could tell."""

    place: int  # in the queue
    label: str | None
    cannot_tell: bool = False


class Session:
    """Requests come from several threads, so every public method takes the lock."""

    def __init__(self, run: Path, most: int = MOST, rows: int = ROWS, device: str = "auto") -> None:
        if most < 1:
            raise ConfigError(f"most must be at least 1, got {most}")
        self.most, self.rows, self.device = most, rows, device
        self.lock = threading.RLock()
        self.cannot_tell: set[str] = set()  # names of examples, for this sitting
        self.total = 0  # labels given in this sitting, on whatever run
        self.trainer = Trainer(self._load)
        self._load(run)

    def _load(self, run: Path) -> None:
        opened = open_run(run, self.rows, self.device)
        with self.lock:
            self.opened = opened
            self.answers = answers_of(opened.config, opened.pool)
            most = self.most + len(self.cannot_tell)
            order = worth_labelling(opened.probabilities, opened.pool, opened.rows, most)
            names = Display(opened.config, opened.pool, opened.rows[:0])
            wanted = [int(i) for i in order if names.name(int(opened.rows[i])) not in self.cannot_tell]
            self.queue = wanted[: self.most]
            self.display = Display(opened.config, opened.pool, opened.rows[self.queue])
            self.given: list[Given] = []
            self.at = 0
            self.implied: Implied | None = None

    def state(self) -> State:
        """What the page shows now."""
        with self.lock:
            labels = [given.label for given in self.given if given.label is not None]
            return {
                "run": str(self.opened.run),
                "where": self._where(),
                "classes": list(self.opened.choices),
                "example": self._example(self.at),
                "next": self._example(self.at + 1),
                "asked": len(self.queue),
                "passed": self.at,
                "labelled": len(labels),
                "total": self.total,
                "unlabelled": self.opened.num_unlabelled - len(labels),
                "can_undo": bool(self.given),
                "implied": self._implied() if self.implied is not None else None,
                "command": shlex.join(["cadr", *self._training()]),
                "training": self.trainer.state(),
            }

    def label(self, row: int, label: str) -> State:
        """The example in question is of this class; it is written down before this returns."""
        with self.lock:
            if self._is_current(row):
                if label not in self.opened.choices:
                    raise ConfigError(f"there is no class {label!r}")
                self.answers.give({row: label})
                self._pass(Given(self.at, label))
                self.total += 1
                if sum(given.label is not None for given in self.given) % EVERY == 0:
                    self.implied = self._imply()
            return self.state()

    def skip(self, row: int, cannot_tell: bool = False) -> State:
        """The example stays without a label; if nobody can tell its class, it is not asked for again."""
        with self.lock:
            if self._is_current(row):
                if cannot_tell:
                    self.cannot_tell.add(self.display.name(row))
                self._pass(Given(self.at, None, cannot_tell))
            return self.state()

    def undo(self) -> State:
        """Back to the example before, as if nothing had been said of it."""
        with self.lock:
            if self.given and not self.trainer.running:
                last = self.given[-1]
                row = self._row(last.place)
                if last.label is not None:
                    self.answers.take_back(row)
                    self.total -= 1
                self.cannot_tell.discard(self.display.name(row))
                self.given.pop()
                self.at = last.place
            return self.state()

    def train(self) -> State:
        """Learn from the answers, in a process of its own; then go on with the new run."""
        with self.lock:
            if not self.trainer.running:
                arguments = self._training()
                self.trainer.start(arguments, Path(arguments[arguments.index("--out") + 1]))
            return self.state()

    def picture(self, row: int) -> tuple[str, bytes] | None:
        """Of an example that was asked for; None of any other."""
        with self.lock:
            if row not in self.opened.rows[self.queue] or not self.display.shown(row).picture:
                return None
            display = self.display
        return display.picture(row)

    def _row(self, place: int) -> int:
        return int(self.opened.rows[self.queue[place]])

    def _is_current(self, row: int) -> bool:
        """Whether the page means the example in question; a key that was pressed twice means the one before."""
        return not self.trainer.running and self.at < len(self.queue) and self._row(self.at) == row

    def _pass(self, given: Given) -> None:
        self.given.append(given)
        self.at += 1

    def _example(self, place: int) -> State | None:
        if place >= len(self.queue):
            return None
        row, p = self._row(place), self.opened.probabilities[self.queue[place]]
        shown = self.display.shown(row)
        best = np.argsort(-p, kind="stable")[:GUESSES]
        return {
            "row": row,
            "name": shown.name,
            "cells": shown.cells,
            "text": shown.text,
            "picture": f"picture/{row}" if shown.picture else None,
            "guesses": [[self.opened.class_names[int(c)], float(p[c])] for c in best],
        }

    def _where(self) -> str:
        return str(self.answers.labels or self.opened.config.data)

    def _imply(self) -> Implied | None:
        names, pool = self.opened.class_names, self.opened.pool
        known = {name: c for c, name in enumerate(names)}
        answered = [(self.queue[given.place], known[given.label]) for given in self.given if given.label in known]
        if not answered:
            return None
        places, labels = np.array(answered).T
        counts = np.zeros(len(names))
        for name, count in zip(pool.class_names, pool.counts.tolist(), strict=True):
            if name in known:
                counts[known[name]] = count
        return implied_sizes(self.opened.probabilities, places, labels, counts, self.opened.num_unlabelled)

    def _implied(self) -> State:
        """The classes of which the answers say most: what was expected of them, and what follows."""
        found = self.implied
        assert found is not None
        first = found.surprising.tolist()
        others = [int(c) for c in np.argsort(-found.given, kind="stable") if c not in first]
        return {
            "answers": int(found.given.sum()),
            "classes": [
                {
                    "name": self.opened.class_names[c],
                    "given": int(found.given[c]),
                    **{
                        key: float(getattr(found, key)[c]) for key in ("expected", "believed", "implied", "low", "high")
                    },
                    "surprising": c in first,
                }
                for c in [*first, *others][:_SHOWN]
            ],
        }

    def _training(self) -> list[str]:
        """The arguments of `cadr` that learn from the answers, too."""
        config = self.opened.config
        if self.answers.labels is not None:
            source = dataclasses.replace(config.source, labels=str(self.answers.labels))
            config = dataclasses.replace(config, source=source)
        training = dataclasses.replace(config.training, continue_from=str(self.opened.run))
        config = dataclasses.replace(config, training=training)
        return shlex.split(command(config, str(next_run(self.opened.run))))[1:]
