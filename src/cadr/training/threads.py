"""As many threads of a CPU as the work of a step is worth.

Threads wait for each other after every operation. Where an operation takes microseconds they gain nothing on a machine
with nothing else to do, and on a busy one, where each of them may have to wait for its turn, a step takes up to a
hundred times as long. The number follows from the network and the batch, not from the clock: sums are added up in an
order that depends on it, and the same seed has to give the same run.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils.flop_counter import FlopCounterMode

from cadr.algorithms import Algorithm
from cadr.config import Training
from cadr.data.pool import Pool
from cadr.training.feed import Inputs
from cadr.training.prepare import Prepared
from cadr.utils.optional_imports import optional_import

WORTH = 2e9  # operations of a step, a tenth of a second of one core
_NUMBERS = 5e7  # of the data, times the classes: the work of one pass over them
_BACKWARD = 3  # times the operations of a forward pass, with it


def operations(prepared: Prepared, inputs: Inputs) -> float:
    """Floating-point operations of a training step; infinitely many where nobody knows, or a GPU does them."""
    if prepared.device.type != "cpu":
        return math.inf
    model, config = prepared.model, prepared.config
    training = model.training
    example = inputs.ready(inputs.examples[:1], model, torch.float32)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), FlopCounterMode(display=False) as counter:
            model.eval()(example)
    except Exception:  # of somebody's own network, which need not take a single example
        return math.inf
    finally:
        model.train(training)
    return float(counter.get_total_flops()) * _BACKWARD * num_views(config.algorithm, config.training)


def num_views(algorithm: Algorithm, training: Training) -> int:
    """That pass through the network in a step."""
    unlabelled = training.ratio * (algorithm.weak_views + algorithm.strong_views)
    return training.batch * (algorithm.labelled_views + unlabelled)


@contextmanager
def threads_for(work: float) -> Iterator[int]:
    """One thread for a step of little work, otherwise as many as there are; what OMP_NUM_THREADS says is left alone."""
    before = torch.get_num_threads()
    threads = 1 if work < WORTH and "OMP_NUM_THREADS" not in os.environ else before
    torch.set_num_threads(threads)
    try:
        yield threads
    finally:
        torch.set_num_threads(before)


@contextmanager
def library_threads_for(pool: Pool) -> Iterator[None]:
    """The same for the libraries that an ensemble is fitted by."""
    threadpoolctl = optional_import("threadpoolctl", "an ensemble")
    few = pool.examples.size * pool.num_classes < _NUMBERS and "OMP_NUM_THREADS" not in os.environ
    with threads_for(0.0 if few else math.inf), threadpoolctl.threadpool_limits(1 if few else None):
        yield
