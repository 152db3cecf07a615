"""One training step on static tensors: draw, perturb, forward, losses, backward, optimiser, average, P̂.

Everything the step changes lives in tensors that are updated in place, and everything it draws is a function of the
step counter, itself such a tensor. So the same `compute` runs eagerly on a CPU, and on a GPU is captured once in a
CUDA graph and replayed, with no work on the host but the launch. Batches come as a table of row positions, uploaded
once for many steps; the captured step makes the next one's views while it trains.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from cadr.algorithms import Algorithm, Batch, Output, Refreshing
from cadr.config import Training
from cadr.errors import CheckpointError
from cadr.kernels import wide_resnet
from cadr.kernels.cuda_stream import SideStream
from cadr.metrics import count_pseudo_labels
from cadr.optim import Optimiser, Update
from cadr.optim.flat_parameters import Flat
from cadr.training.batch_norm_control import Network
from cadr.training.compiling import compiled, explained
from cadr.training.cuda_graph import capture
from cadr.training.device_data import Inputs
from cadr.training.network import call, is_half
from cadr.training.row_table import Rows
from cadr.training.self_training import Generation
from cadr.training.state import key, share_untrained, untrained
from cadr.utils import random_numbers

_WEAK_LABELLED, _WEAK, _STRONG, _PROBE, _METHOD, _MORE = range(6)  # streams of random numbers


class Step:
    """The state of a run on its device, and the way from one step to the next."""

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
    ) -> None:
        self.generation = generation or Generation(0, 0, training.steps)
        self.device = inputs.examples.device
        self.inputs, self.algorithm, self.views = inputs, algorithm, views
        self.optimiser, self.training = optimiser, training
        self.half = is_half(training.precision, self.device)
        self.dtype = torch.bfloat16 if self.half else torch.float32
        self.on_gpu = self.device.type == "cuda"
        self.captures = self.on_gpu and algorithm.capturable
        self.views_learn = bool(getattr(views, "learns", False))
        self.looks_ahead = not self.views_learn  # else the next step's views depend on how this one goes
        self.refreshing = algorithm if isinstance(algorithm, Refreshing) else None

        if self.on_gpu:
            torch.cuda.set_device(self.device)  # our kernels and the captured graph are of the current one
            # Which algorithms cuDNN would find by trying differs from process to process, and with them the rounding:
            # runs with one seed would part. Those it chooses untried are as fast.
            torch.backends.cudnn.benchmark = False
            torch.backends.cuda.matmul.allow_tf32 = self.half  # bf16 is coarser
            torch.backends.cudnn.allow_tf32 = self.half
        self.model = model.to(self.device)
        if self.on_gpu and inputs.is_image:
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model.train()
        flat = Flat(self.model, optimiser.hidden(self.model))
        self.flat = flat
        self.average_model = copy.deepcopy(self.model).eval()
        self.weights, self.parameters = flat.adopt(self.model)
        self.average, _ = flat.adopt(self.average_model)
        share_untrained(self.model, self.average_model)
        self.gradient, self.velocity = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.update: Update = optimiser.begin(flat, self.weights, self.gradient, self.velocity)

        facts = inputs.facts(self.generation.stop - self.generation.start, self.generation.number)
        self.state = {name: value.to(self.device) for name, value in algorithm.init(facts).items()}
        self.view_state: dict[str, Tensor] = views.init(self.device)
        self.step = torch.full((), self.generation.start, dtype=torch.int64, device=self.device)
        self.done = self.generation.start  # the same number on the host
        self.slowed = torch.ones((), dtype=torch.float64, device=self.device)  # share of the rate, see `Recovery`

        classes = inputs.num_classes
        self.pseudo = torch.zeros(classes + 1, classes, 2, dtype=torch.int64, device=self.device)
        self.sums = torch.zeros(1 + _MOST_TERMS, dtype=torch.float64, device=self.device)
        self.thresholds = torch.zeros(classes, device=self.device)
        self.prior = torch.full((classes,), 1.0 / classes, device=self.device)
        self.term_names: list[str] = []

        self.rows = Rows(inputs, training, algorithm.balanced_labels, longest)
        self.beside = SideStream(self.device)
        self.ready: Batch | None = None  # of the coming step, where a captured one looks ahead; always the same memory
        self.graph: torch.cuda.CUDAGraph | None = None
        self._compile(training.compile)

    def _compile(self, what: str) -> None:
        """Hand losses, update and network to torch.compile; a network that is written out gains too little by it."""
        self.loss: Callable[[Batch], Output] = self._loss
        self.note: Callable[[Tensor, Tensor, Output], None] = self._note
        self.move: Callable[[Tensor, Output], None] = self._move
        by_hand = getattr(self.model, "handles_precision", False) or wide_resnet.available(self.model, self.device)
        if what == "auto":
            what = "all" if self.on_gpu and not by_hand else "none"
        self.network = Network(self.model, self.half)
        if what != "none":
            self.network.hide(by_hand or what == "losses")
            torch.compiler.reset()  # or the ninth run of a process would meet the limit on recompilations
            if self.flat.hidden:  # matrix products on streams of their own
                self.update = torch.compiler.disable(self.update)  # type: ignore[no-untyped-call]
            self.loss, self.note, self.move = compiled(self._loss), compiled(self._note), compiled(self._move)

    def compute(self) -> None:
        """One step, in place."""
        with explained():
            self._train_on(self._make_batch(self.step))

    def compute_ahead(self) -> None:
        """The same on the batch that lies ready, while the next one is made."""
        assert self.ready is not None
        with self.beside.work():
            coming = self._make_batch(self.step + 1)
        with explained():
            self._train_on(self.ready)
        _copy(coming, self.ready)

    def _train_on(self, batch: Batch) -> None:
        output = self.loss(batch)
        terms = torch.stack(list(output.terms.values()))
        self.term_names = list(output.terms)
        with torch.no_grad(), self.beside.work():
            factor = self.factor(self.step)
            self.note(batch.index, terms.detach(), output)
        gradients = torch.autograd.grad(terms.sum(), self.parameters, materialize_grads=True)
        with torch.no_grad():
            if self.views_learn:
                self._learn_views()
            self.flat.collect(self.gradient, gradients)
            self.beside.join()
            self.move(factor, output)

    def _make_batch(self, step: Tensor) -> Batch:
        inputs, weak_views, strong_views = self.inputs, self.algorithm.weak_views, self.algorithm.strong_views
        others = _MORE + weak_views + strong_views
        keys = random_numbers.keys(self.training.seed, step, others + self.algorithm.labelled_views - 1)
        weak_keys = [keys[_WEAK], *keys[_MORE : _MORE + weak_views - 1]]
        strong_keys = [keys[_STRONG], *keys[_MORE + weak_views : others]][:strong_views]
        labelled, position = self.rows.of(step)
        # Many times as fast as an index on a CPU, which copies number by number.
        seen, unseen = (inputs.examples.index_select(0, rows) for rows in (labelled, inputs.stream[position]))
        more = [self.views.strong_view(seen, key, self.view_state) for key in keys[others:]]
        views = (
            _stacked(seen, [self.views.weak(seen, keys[_WEAK_LABELLED]), *more]),
            _stacked(unseen, [self.views.weak(unseen, key) for key in weak_keys]),
            _stacked(unseen, [self.views.strong_view(unseen, key, self.view_state) for key in strong_keys]),
        )
        first, weak, strong = (inputs.ready(view, self.model, self.dtype) for view in views)
        within = step - self.generation.start
        return Batch(first, inputs.labels[labelled], weak, strong, position, keys[_METHOD], within)

    def _learn_views(self) -> None:
        """Views that adapt try themselves on the labelled examples, and see what the averaged model makes of them."""
        inputs, (labelled, _) = self.inputs, self.rows.of(self.step)
        key = random_numbers.key(self.training.seed, self.step, _PROBE)
        probes, policies = self.views.probe(inputs.examples[labelled], key)
        predicted = call(self.average_model, inputs.ready(probes, self.average_model, self.dtype), self.half).softmax(1)
        learned = self.views.update(self.view_state, policies, predicted, inputs.labels[labelled])
        for name, value in learned.items():
            self.view_state[name].copy_(value)

    def _loss(self, batch: Batch) -> Output:
        return self.algorithm.loss(self.network, batch, self.state)

    def _note(self, position: Tensor, terms: Tensor, output: Output) -> None:
        """Add up what the log will say (see `read`)."""
        self.sums[: 1 + len(terms)] += torch.cat((output.mask.mean().reshape(1), terms))
        truth = self.inputs.truth[self.inputs.stream[position]]
        self.pseudo += count_pseudo_labels(truth, output.pseudo, output.mask > 0, self.inputs.num_classes)
        self.thresholds.copy_(output.thresholds)
        self.prior.copy_(output.prior)

    def _move(self, factor: Tensor, output: Output) -> None:
        """Move the weights and their average, and take over the algorithm's state."""
        self.update(factor)
        self.average.lerp_(self.weights, 1.0 - self.optimiser.ema)
        for name, value in output.state.items():
            if value is not self.state[name]:
                self.state[name].copy_(value)
        self.step += 1

    def factor(self, step: Tensor) -> Tensor:
        """The learning rate's share of what it is at first; every generation has a schedule of its own."""
        start, stop = self.generation.start, self.generation.stop
        return self.optimiser.factor(step - start, stop - start) * self.slowed

    def start(self, n: int) -> None:
        """Get everything ready for the next `n` steps, so that `advance` takes only the time of the steps."""
        self.rows.upload(self.done, self.done + n)
        if self.captures and self.graph is None:
            self.graph = self._capture()
        if self.ready is not None:  # else it is that of warming up, of beyond the table, or of before `load`
            _copy(self._make_batch(self.step), self.ready)

    def advance(self, n: int, stop: Callable[[], bool] = lambda: False) -> None:
        """Go `n` steps on, or fewer if `stop()` says so between two of them; does not wait for the device."""
        self.start(n)
        for _ in range(n):
            if self.graph is None:
                self.compute()
            else:
                self.graph.replay()
            self.done += 1
            self._refresh()
            if stop():
                return
        if self.on_gpu:  # made while the device is busy
            self.rows.make(self.done, self.done + n)

    def _refresh(self) -> None:
        """What an algorithm does to its state between steps, every so many of them."""
        if self.refreshing is None or self.done % self.refreshing.refresh_every:
            return
        with torch.no_grad():
            for name, value in self.refreshing.refresh(self.state, self.done, self.training.steps).items():
                if value is not self.state[name]:
                    self.state[name].copy_(value)

    def _capture(self) -> torch.cuda.CUDAGraph:
        compute = self.compute
        if self.looks_ahead:
            compute, self.ready = self.compute_ahead, self._make_batch(self.step)
        before = {name: tensor.clone() for name, tensor in self.tensors().items()}
        return capture(compute, lambda: self.load(before), self.device)

    def tensors(self) -> dict[str, Tensor]:
        """All that a run is, by name: what a checkpoint holds. The tensors are the live ones."""
        named: dict[str, Tensor] = {"step": self.step, "sums": self.sums, "pseudo": self.pseudo}
        for kind, flat in (("weight", self.weights), ("velocity", self.velocity), ("average", self.average)):
            views = zip(self.flat.names, self.flat.views(flat), strict=True)
            named |= {key(kind, name): view for name, view in views}
        named |= untrained(self.model)
        named |= {f"algorithm.{name}": value for name, value in self.state.items()}
        named |= {f"views.{name}": value for name, value in self.view_state.items()}
        named |= {"prior": self.prior, "thresholds": self.thresholds}
        return named

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `tensors` gave."""
        ours = self.tensors()
        if {n: t.shape for n, t in ours.items()} != {n: t.shape for n, t in tensors.items()}:
            raise CheckpointError("The checkpoint is of another model or algorithm; start a new run in another folder.")
        with torch.no_grad():
            for name, tensor in ours.items():
                tensor.copy_(tensors[name])
        self.done = int(self.step)

    def read(self) -> tuple[list[float], Tensor, bool]:
        """Sums of the mask rate and of each term, pseudo-label counts, and whether all weights are finite.

        Waits for the device, and starts new sums.
        """
        finite = bool(self.weights.isfinite().all())
        sums, pseudo = self.sums.tolist(), self.pseudo.cpu().clone()
        self.sums.zero_()
        self.pseudo.zero_()
        return sums[: 1 + len(self.term_names)], pseudo, finite


_MOST_TERMS = 16  # that an objective may have


def _copy(batch: Batch, to: Batch) -> None:
    for new, old in zip(batch, to, strict=True):
        old.copy_(new)


def _stacked(examples: Tensor, views: list[Tensor]) -> Tensor:
    """Views of the same examples one after another, none at all included."""
    return torch.cat(views) if len(views) > 1 else views[0] if views else examples[:0]
