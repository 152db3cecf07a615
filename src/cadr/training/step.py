"""One training step: loss, backward, update; captured where there is a GPU.

Everything the step changes lies in tensors that are updated in place (`state.py`), and everything it draws is a
function of the step counter, itself such a tensor (`feed.py`). So the same `compute` runs eagerly on a CPU, and on a
GPU is captured once in a CUDA graph and replayed, with no work on the host but the launch. The captured step makes the
next batch while it trains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cadr.algorithms import Algorithm, Batch, Output
from cadr.config import Training
from cadr.kernels import wide_resnet
from cadr.kernels.cuda_stream import SideStream
from cadr.models.synced_norm import synchronise
from cadr.optim import Optimiser, Update
from cadr.training import distributed
from cadr.training.capture import capture, compiled, explained
from cadr.training.feed import Inputs, copy_batch, feed_of
from cadr.training.network import Network, is_half
from cadr.training.phases.base import Generation, Phase
from cadr.training.state import TrainingState
from cadr.utils import ranks


class Step:
    """The way from one step to the next, on a device."""

    def __init__(
        self,
        model: nn.Module,
        algorithm: Algorithm,
        views: Any,
        inputs: Inputs,
        optimiser: Optimiser,
        training: Training,
        longest: int,  # steps between two uploads of rows, at most
        generation: Generation | None = None,  # the whole run unless given
        phases: Sequence[Phase] = (),
    ) -> None:
        self.generation = generation or Generation(0, 0, training.steps)
        self.device = inputs.examples.device
        self.inputs, self.algorithm, self.views = inputs, algorithm, views
        self.optimiser, self.training, self.phases = optimiser, training, phases
        self.half = is_half(training.precision, self.device)
        self.dtype = torch.bfloat16 if self.half else torch.float32
        self.on_gpu = self.device.type == "cuda"
        self.captures = self.on_gpu and algorithm.capturable
        self.looks_ahead = not any(phase.steers_views for phase in phases)

        model = self._placed(model)
        self.state = state = TrainingState(model, optimiser.hidden(model), inputs.num_classes, self.generation.start)
        self.gradient = torch.zeros_like(state.weights)
        self.update: Update = optimiser.begin(state.flat, state.weights, self.gradient, state.velocity)
        facts = inputs.facts(self.generation.stop - self.generation.start, self.generation.number)
        state.method = {name: value.to(self.device) for name, value in algorithm.init(facts).items()}
        state.views = views.init(self.device)
        distributed.same_start(state.tensors())
        self.slowed = torch.ones((), dtype=torch.float64, device=self.device)  # share of the rate, see `Recovery`
        self.term_names: list[str] = []

        start = self.generation.start
        self.feed = feed_of(inputs, algorithm, views, state.views, training, longest, start, model, self.dtype)
        self.beside = SideStream(self.device)
        self.ready: Batch | None = None  # of the coming step, where a captured one looks ahead; always the same memory
        self.graph: torch.cuda.CUDAGraph | None = None
        self._compile(training.compile)

    @property
    def done(self) -> int:
        return self.state.done

    def _placed(self, model: nn.Module) -> nn.Module:
        if self.on_gpu:
            torch.cuda.set_device(self.device)  # our kernels and the captured graph are of the current one
            # Which algorithms cuDNN would find by trying differs from process to process, and with them the rounding:
            # runs with one seed would part. Those it chooses untried are as fast.
            torch.backends.cudnn.benchmark = False
            torch.backends.cuda.matmul.allow_tf32 = self.half  # bf16 is coarser
            torch.backends.cudnn.allow_tf32 = self.half
        model = model.to(self.device)
        if self.on_gpu and self.inputs.is_image:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if ranks.world() > 1 and self.training.batch_norm == "global":
            synchronise(model)
        return model

    def _compile(self, what: str) -> None:
        """Hand losses, update and network to torch.compile; a network that is written out gains too little by it."""
        self.loss: Callable[[Batch], Output] = self._loss
        self.note: Callable[[Tensor, Tensor, Output], None] = self._note
        self.move: Callable[[Tensor, Output], None] = self._move
        model = self.state.model
        by_hand = getattr(model, "handles_precision", False) or wide_resnet.available(model, self.device)
        if what == "auto":
            what = "all" if self.on_gpu and not by_hand else "none"
        self.network = Network(model, self.half)
        if what != "none":
            self.network.hide(by_hand or what == "losses" or ranks.world() > 1)
            torch.compiler.reset()  # or the ninth run of a process would meet the limit on recompilations
            if self.state.flat.hidden:  # matrix products on streams of their own
                self.update = torch.compiler.disable(self.update)  # type: ignore[no-untyped-call]
            self.loss, self.note, self.move = compiled(self._loss), compiled(self._note), compiled(self._move)

    def compute(self) -> None:
        """One step, in place."""
        with explained():
            self._train_on(self.feed.batch(self.state.step))

    def compute_ahead(self) -> None:
        """The same on the batch that lies ready, while the next one is made."""
        assert self.ready is not None
        with self.beside.work():
            coming = self.feed.batch(self.state.step + 1)
        with explained():
            self._train_on(self.ready)
        copy_batch(coming, self.ready)

    def _train_on(self, batch: Batch) -> None:
        output = self.loss(batch)
        terms = torch.stack(list(output.terms.values()))
        self.term_names = list(output.terms)
        with torch.no_grad(), self.beside.work():
            factor = self.factor(self.state.step)
            self.note(batch.index, terms.detach(), output)
        gradients = torch.autograd.grad(terms.sum(), self.state.parameters, materialize_grads=True)
        with torch.no_grad():
            for phase in self.phases:
                phase.in_step(self)
            self.state.flat.collect(self.gradient, gradients)
            ranks.total(self.gradient)
            self.beside.join()
            self.move(factor, output)

    def _loss(self, batch: Batch) -> Output:
        return self.algorithm.loss(self.network, batch, self.state.method)

    def _note(self, position: Tensor, terms: Tensor, output: Output) -> None:
        self.state.note(self.inputs.truth[self.inputs.stream[position]], terms, output)

    def _move(self, factor: Tensor, output: Output) -> None:
        self.update(factor)
        self.state.follow(output, self.optimiser.ema)

    def factor(self, step: Tensor) -> Tensor:
        """The learning rate's share of what it is at first; every generation has a schedule of its own."""
        start, stop = self.generation.start, self.generation.stop
        return self.optimiser.factor(step - start, stop - start) * self.slowed

    def start(self, n: int) -> None:
        """Get everything ready for the next `n` steps, so that `advance` takes only the time of the steps."""
        self.feed.rows.upload(self.done, self.done + n)
        self.feed.fetch(self.done)
        if self.captures and self.graph is None:
            self.graph = self._capture()
        if self.ready is not None:  # else it is that of warming up, of beyond the table, or of before `load`
            copy_batch(self.feed.batch(self.state.step), self.ready)

    def advance(self, n: int, stop: Callable[[], bool] = lambda: False) -> None:
        """Go `n` steps on, or fewer if `stop()` says so between two of them; does not wait for the device."""
        self.start(n)
        for _ in range(n):
            self.feed.fetch(self.done if self.ready is None else self.done + 1)
            if self.graph is None:
                self.compute()
            else:
                self.graph.replay()
            self.state.done += 1
            for phase in self.phases:
                phase.after_step(self)
            if stop():
                return
        if self.on_gpu:  # made while the device is busy
            self.feed.rows.make(self.done, self.done + n)

    def _capture(self) -> torch.cuda.CUDAGraph:
        compute, state = self.compute, self.state
        if self.looks_ahead:
            compute, self.ready = self.compute_ahead, self.feed.batch(state.step)
        before = {name: tensor.clone() for name, tensor in state.tensors().items()}
        return capture(compute, lambda: state.load(before), self.device)
