"""Run a configuration to its end, yielding records. Stops at log and evaluation points; between them only the step."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cadr import metrics
from cadr.config import Config, name_of
from cadr.data.pool import Pool
from cadr.errors import CheckpointError
from cadr.estimate.calibration import calibrate
from cadr.training import checkpoint, distributed, signature
from cadr.training.checkpoint import Saving
from cadr.training.clock import Clock, advice, device_name, seconds_left
from cadr.training.ensemble_run import EnsembleRun
from cadr.training.feed import Inputs
from cadr.training.interrupt import Deferred
from cadr.training.network import evaluate, logits_of
from cadr.training.phases import Generation, Stretch, phases_of
from cadr.training.prepare import (
    Prepared,
    check_finished,
    check_same_data,
    check_unchanged,
    fingerprint,
    prepare,
    write,
)
from cadr.training.record import Record, evaluation_points, listed, rounded, scores, stopping_points
from cadr.training.recovery import Finite, NotFiniteError, Recovery, check_record
from cadr.training.result import describe_run, result, started, summary
from cadr.training.run_folder import CALIBRATION, RESULT, RunFolder
from cadr.training.signature import InputSpec
from cadr.training.step import Step
from cadr.training.threads import library_threads_for, num_views, operations, threads_for
from cadr.training.watchdogs import Watch
from cadr.utils import ranks
from cadr.utils.memory import freed_memory_kept
from cadr.utils.text import duration

_WORTH_SAYING = 20.0  # seconds
_APART = 1.5  # times, from which a pace is another than was said


def train(
    config: Config, out: Path | str, pool: Pool | None = None, model: nn.Module | None = None
) -> Generator[Record, None, None]:
    """Train, or go on training, the run in folder `out`; the same call after a kill continues it.

    Without a pool the data that the configuration names are opened. A module of your own takes the place of the
    configuration's model. Closing the iterator, or Ctrl-C, saves a checkpoint. A run that is no longer finite goes back
    to the last good one with a lower learning rate and says so; where that does not help either, it raises a
    TrainingError and leaves that checkpoint alone.
    """
    folder = RunFolder(out)
    distributed.join(config.training.device)
    with folder.locked():
        finished = ranks.from_first(lambda: _finished_before(folder, config, pool, model))
        if finished is not None:
            yield finished
            return
        prepared = ranks.together(lambda: prepare(config, folder, pool, model))
        distributed.check_alike(prepared)
        if config.is_instant:
            instant = EnsembleRun(prepared, folder)
            folder.remove(RESULT)  # of a checkpoint that is damaged: its steps are done again
            with library_threads_for(prepared.pool):
                yield from instant.records()
            return
        inputs = Inputs.of(prepared.pool, prepared.device)
        with threads_for(operations(prepared, inputs)):
            yield from _to_the_end(prepared, inputs, folder)


def _to_the_end(prepared: Prepared, inputs: Inputs, folder: RunFolder) -> Iterator[Record]:
    """However often the run has to go back."""
    recovery = Recovery(prepared.model, prepared.config.optimiser.lr)
    while True:
        run = NetworkRun(prepared, inputs, folder, recovery)
        folder.remove(RESULT)
        try:
            yield from run.records()
            return
        except NotFiniteError as error:
            if run.stopped:
                raise
            recovery.go_back(error)
        del run  # before the next one takes as much memory


class NetworkRun:
    """One process's part of a run: from the last checkpoint to the end, or to where it is stopped."""

    def __init__(self, prepared: Prepared, inputs: Inputs, folder: RunFolder, recovery: Recovery) -> None:
        self.prepared, self.inputs, self.folder, self.recovery = prepared, inputs, folder, recovery
        config, self.training = prepared.config, prepared.config.training
        self.phases = phases_of(config, self.inputs, prepared.pool.class_names, prepared.model)
        self.stretch = self._next_stretch(Stretch(self.inputs, Generation(0, 0, self.training.steps)))
        self.evaluation_points = evaluation_points(self.training)
        of_phases = set().union(*(phase.stops for phase in self.phases))
        self.stops = sorted({*stopping_points(self.training), *of_phases})
        self.step = self._begin()
        self.finite = Finite(self.step)
        algorithm = config.algorithm
        aimed = None if algorithm.estimates_target else algorithm.aimed_at(prepared.pool.num_classes)
        aims = [] if aimed is None else aimed.tolist()
        self.watch = Watch(prepared.pool.class_names, self.training.steps, aims, name_of(algorithm))
        self.clock = Clock(self.step.device)
        self.saving = Saving(folder.path, self.training.checkpoint_seconds)
        self.logged = 0  # the step of the last log record
        self.whole = True  # all of it is at the end of one and the same step
        self.stopped = False  # by somebody, not by an error
        self.told: float | None = None  # seconds of a step by which somebody was told how long it will take

    def _next_stretch(self, now: Stretch) -> Stretch:
        for phase in self.phases:
            now = phase.stretch(now)
        return now

    def _begin(self) -> Step:
        """The first step of the stretch that is due."""
        config, stretch = self.prepared.config, self.stretch
        longest = max(b - a for a, b in zip([0, *self.stops], self.stops, strict=False))
        parts = (self.prepared.model, config.algorithm, config.views, stretch.inputs, config.optimiser)
        step = Step(*parts, self.training, longest, stretch.generation, self.phases)
        step.slowed.fill_(self.recovery.share)
        return step

    def _begin_afresh_if_due(self) -> None:
        before, self.stretch = self.stretch, self._next_stretch(self.stretch)
        if self.stretch is not before:
            self.step = self._begin()

    def records(self) -> Iterator[Record]:
        yield started(self.prepared, self.inputs, self.step, self._resume())
        for record in self.recovery.records(self.step.done):
            self.folder.append(record)
            yield record
        try:
            yield from self._before_the_first_step()
            self._take_a_step()
            with freed_memory_kept():
                yield from self._hint()
                for stop in [s for s in self.stops if s > self.step.done]:
                    yield from self._go_on_to(stop)
        except (KeyboardInterrupt, GeneratorExit):  # Ctrl-C, or whoever listened has gone
            self.stopped = True
            with Deferred():
                if self.whole:
                    self._save()
            raise
        yield from self._judge_at_last()
        self._calibrate()
        yield ranks.from_first(self._finish)

    def _finish(self) -> Record:
        self.folder.write(RESULT, json.dumps(self._result(), indent=1) + "\n")
        return _finished(self.folder, f"Finished after {self.training.steps} steps.")

    def _judge_at_last(self) -> Iterator[Record]:
        """An evaluation of the last step whose record was lost, which the model itself still has."""
        last = {"kind": "evaluation", "step": self.step.done}
        if self.inputs.test_examples is None:
            return
        if ranks.from_first(lambda: any(last.items() <= record.items() for record in self.folder.records())):
            return
        self.folder.append(record := self._evaluate())
        yield record

    def _go_on_to(self, stop: int) -> Iterator[Record]:
        begun, hints = self.step.done, []
        with self._undivided() as interrupt:
            taken = self._advance(stop, interrupt)
            hints = list(self._correct(taken, self.step.done - begun)) if self.step.done > begun else []
            distributed.meet(self.step.state, self.training)
            records = self._report() if self.step.done == stop else []
            for phase in self.phases:
                records += phase.at_stop(self.step)
            self._begin_afresh_if_due()
            for record in records:
                self.folder.append(record)
            if stop == self.training.steps or self.saving.due():
                self._save()
        if interrupt.requested:
            raise KeyboardInterrupt
        yield from [*hints, *records]

    @contextmanager
    def _undivided(self) -> Iterator[Deferred]:
        """What may be saved before and after, but not in between: a first Ctrl-C waits, a second one does not."""
        with Deferred() as interrupt:
            self.whole = False
            try:
                yield interrupt
            finally:
                self.stopped |= interrupt.requested
            self.whole = True

    def _before_the_first_step(self) -> Iterator[Record]:
        """What phases do where a run begins. Until all of it is done there is nothing to be saved."""
        if self.saving.kept is not None:  # it is continued
            return
        records: list[Record] = []
        with self._undivided() as interrupt:
            for phase in self.phases:
                records += phase.begin(self.step, lambda: interrupt.requested)
            if interrupt.requested:
                raise KeyboardInterrupt
        for record in records:
            self.folder.append(record)
        yield from records

    def _before_a_stop(self) -> int:
        """How many steps can be taken that end at no stop."""
        done = self.step.done
        return min((stop for stop in self.stops if stop > done), default=done + 1) - done - 1

    def _take_a_step(self) -> None:
        """So that it is known how much memory one takes."""
        if self._before_a_stop() < 1:
            return
        with self._undivided() as interrupt:
            self._advance(self.step.done + 1, interrupt)
        if interrupt.requested:
            raise KeyboardInterrupt

    def _hint(self) -> Iterator[Record]:
        """How long it will take, after the first few steps, where somebody would otherwise wait without knowing."""
        most, left = self._before_a_stop(), self.training.steps - self.step.done
        if most < 2:
            return
        with self._undivided() as interrupt:
            seconds = seconds_left(lambda n: self._advance(self.step.done + n, interrupt), most, left)
        if interrupt.requested:
            raise KeyboardInterrupt
        if seconds > _WORTH_SAYING:
            self.told = seconds / left
            yield self._hint_of(seconds, f"At this pace it will take about {duration(seconds)}.{self._advice(seconds)}")

    def _hint_of(self, seconds: float, message: str) -> Record:
        return {"kind": "hint", "step": self.step.done, "seconds": round(seconds), "message": message}

    def _correct(self, taken: float, steps: int) -> Iterator[Record]:
        """Say so once where the first steps were no measure of the others, as on a machine that has become busy."""
        left = self.training.steps - self.step.done
        if self.told is None or not left or not (pace := taken / steps):
            return
        seconds, apart = pace * left, max(pace / self.told, self.told / pace)
        if apart > _APART and seconds > _WORTH_SAYING:
            self.told = pace
            yield self._hint_of(
                seconds, f"At the pace of the last {steps:,} steps it will take {duration(seconds)} more."
            )

    def _advice(self, seconds: float) -> str:
        pictures = self.inputs.is_image and self.step.device.type == "cpu"
        return advice(seconds, max(self.inputs.examples.shape[1:3])) if pictures else ""

    def _calibrate(self) -> None:
        """Fit the probabilities to the labels held out for it; a benchmark's test labels are not for that."""
        prepared, inputs = self.prepared, self.inputs
        if prepared.judged_on == "test" or inputs.test_examples is None or inputs.test_labels is None:
            return
        logits = torch.cat(list(logits_of(self.step.state.average_model, inputs, inputs.test_examples, self.step.half)))
        spec = self._input_spec()
        fitted = calibrate(logits, inputs.test_labels, torch.tensor(spec.labels), self.step.state.prior, spec.rows)
        self.folder.write(CALIBRATION, json.dumps(dataclasses.asdict(fitted), indent=1) + "\n")

    def _input_spec(self) -> InputSpec:
        return InputSpec.of(self.prepared.pool, self.inputs, self.prepared.validation is not None)

    def _resume(self) -> list[str]:
        """Go on from the last checkpoint, if there is one; what had to be mended for that, in words."""
        found, problem = ranks.from_first(lambda: checkpoint.recover(self.folder.path))
        if found is not None:
            tensors, facts = found
            try:
                self.watch.load(facts["watch"])
                self.clock.before, self.logged = dict(facts["before"]), int(facts["logged"])
                self.recovery.resumed_with(float(facts.get("rate_share", 1.0)))  # older runs have none
            except (KeyError, TypeError, ValueError):
                raise CheckpointError(
                    f"The checkpoint of {self.folder.path} is not that of a network's run; start a new one."
                ) from None
            check_same_data(self.folder, self.prepared.pool, facts)
            rest = dict(tensors)
            for phase in self.phases:
                phase.load({name: rest.pop(name) for name in phase.tensors() if name in rest})
            self._begin_afresh_if_due()
            self.step.state.load(rest)
            self.step.slowed.fill_(self.recovery.share)
            self.saving.kept = self.step.done
        write(self.prepared, self.folder)
        lost = self.folder.rewind(self.step.done, self.logged)
        self.folder.write(signature.FILE, self._input_spec().to_json())
        return [words for words in (problem, lost) if words]

    def _save(self) -> None:
        self.finite.check(self.step, self.saving.kept)
        facts = {
            "data": fingerprint(self.prepared.pool),
            "contents": self.prepared.pool.contents,
            "watch": self.watch.facts(),
            "before": self.clock.spent(),
            "logged": self.logged,
            "rate_share": self.recovery.share,
        }
        self.folder.settle()
        tensors = self.step.state.tensors()
        for phase in self.phases:
            tensors |= phase.tensors()
        self.saving.save(self.step.done, tensors, facts)

    def _advance(self, stop: int, interrupt: Deferred) -> float:
        """Go on to a step, or less far if interrupted; the seconds that took."""
        steps, before = stop - self.step.done, self.clock.step_seconds
        self.step.start(steps)
        alone = ranks.world() == 1  # several stop together, at the next log record
        with self.clock.steps():
            self.step.advance(steps, lambda: interrupt.requested and alone)
        interrupt.requested = ranks.either(interrupt.requested)
        return ranks.agreed(self.clock.step_seconds - before)

    def _report(self) -> list[Record]:
        """All that is said at a stop."""
        records = list(self._log())
        if self.step.done in self.evaluation_points and self.inputs.test_examples is not None:
            records.append(self._evaluate())
        return records

    def _log(self) -> Iterator[Record]:
        step = self.step
        (mask, *terms), pseudo, finite = step.state.read(len(step.term_names))
        covered, self.logged = step.done - self.logged, step.done
        means = {name: rounded(value / covered) for name, value in zip(step.term_names, terms, strict=True)}
        check_record(step.done, means, finite, self.saving.kept)
        quality = {name: listed(values) for name, values in metrics.pseudo_label_quality(pseudo).items()}
        last = torch.tensor(step.done - 1)
        yield {
            "kind": "train",
            "step": step.done,
            "steps": covered,
            "loss": rounded(sum(terms) / covered),
            "terms": means,
            "mask": rounded(100.0 * mask / covered),
            **quality,
            "prior": listed(step.state.prior),
            "thresholds": listed(step.state.thresholds),
            "lr": rounded(self.prepared.config.optimiser.lr * float(step.factor(last))),
            "timing": self._timing(),
        }
        uses = len(terms) > 1 and step.algorithm.selects
        for message in self.watch.observe(step.done, pseudo, uses):
            yield {"kind": "warning", "step": step.done, "message": message}

    def _evaluate(self) -> Record:
        counts = evaluate(self.step.state.average_model, self.inputs, self.step.half)
        return {
            "kind": "evaluation",
            "step": self.step.done,
            "on": self.prepared.judged_on,
            **scores(counts),
            "timing": self._timing(),
        }

    def _timing(self) -> dict[str, float]:
        return self.clock.timing(self.step.done, num_views(self.step.algorithm, self.training))

    def _result(self) -> dict[str, Any]:
        prepared, spent = self.prepared, self.clock.spent()
        evaluations = [record for record in self.folder.records() if record["kind"] == "evaluation"]
        return {
            **describe_run(prepared.config, prepared.pool.name, prepared.model_name, prepared.split),
            "device": device_name(self.step.device),
            "seconds": round(spent["seconds"], 2),
            "ms_per_step": round(1000.0 * spent["step_seconds"] / self.training.steps, 4),
            "peak_memory_gib": round(spent["peak_memory_gib"], 3),
            **summary(evaluations),
            "prior": listed(self.step.state.prior),
            **({} if self.recovery.share == 1.0 else {"rate_share": self.recovery.share}),
        }


def _finished_before(folder: RunFolder, config: Config, pool: Pool | None, model: nn.Module | None) -> Record | None:
    """The last record of a run that was finished before, and is intact."""
    if not (folder.path / RESULT).exists():
        return None
    check_unchanged(folder, config)
    found, problem = checkpoint.newest(folder.path)
    if found is not None:
        check_finished(folder, pool, model, found[1])
    return None if problem else _finished(folder, f"{folder.path} is finished already; nothing was done.")


def _finished(folder: RunFolder, message: str) -> Record:
    content = result(folder.path)
    return {"kind": "finished", "step": content["steps"], "message": message, "result": content}
