"""What the loss costs, without the network: one step's batch (64 labelled and 448 unlabelled rows) on a CPU.

    python benchmarks/loss_cost.py            prints the table, writes benchmarks/loss_cost.json

Each time is the shortest of many calls (the longer ones were disturbed by other work), in milliseconds, on one thread.
`marginal` is the part in which the forms differ, `cap` the loss that needs it, `cadr` the whole objective; `fixmatch`
is the objective without either.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from cadr import functional
from cadr.estimate.prior import Form, log_marginal, uniform_prior

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.explain import explain

LABELLED, UNLABELLED = 64, 448
CLASSES = (10, 100, 1000)
SECONDS, AT_LEAST = 2.0, 15  # per cell


def losses(form: Form) -> dict[str, Callable[..., Tensor]]:
    def marginal(labelled: Tensor, labels: Tensor, weak: Tensor, strong: Tensor, prior: Tensor) -> Tensor:
        return log_marginal(weak, prior, form).sum()

    def cap(labelled: Tensor, labels: Tensor, weak: Tensor, strong: Tensor, prior: Tensor) -> Tensor:
        return functional.cap(labelled, labels, weak, prior, form)

    def cadr(labelled: Tensor, labels: Tensor, weak: Tensor, strong: Tensor, prior: Tensor) -> Tensor:
        return functional.cadr(labelled, labels, weak, strong, prior, form=form)[0]

    return {"marginal": marginal, "cap": cap, "cadr": cadr}


def fixmatch(labelled: Tensor, labels: Tensor, weak: Tensor, strong: Tensor, prior: Tensor) -> Tensor:
    new_prior = functional.update_prior(prior, weak)
    return functional.cross_entropy(labelled, labels).mean() + functional.cai(weak, strong, new_prior, beta=0.0)


def measure(loss: Callable[..., Tensor], classes: int) -> dict[str, float]:
    """Milliseconds of the forward pass, and of forward and backward."""
    random = torch.Generator().manual_seed(0)
    logits = [(3 * torch.randn(n, classes, generator=random)).requires_grad_() for n in (LABELLED, *2 * (UNLABELLED,))]
    labels, prior = torch.randint(0, classes, (LABELLED,), generator=random), uniform_prior(classes)
    forward: list[float] = []
    both: list[float] = []
    started = time.perf_counter()
    while len(both) < AT_LEAST or time.perf_counter() - started < SECONDS:
        begin = time.process_time()
        value = loss(logits[0], labels, logits[1], logits[2], prior)
        middle = time.process_time()
        torch.autograd.grad(value, logits, allow_unused=True)
        end = time.process_time()
        forward.append(1e3 * (middle - begin))
        both.append(1e3 * (end - begin))
    return {"forward_ms": round(min(forward), 4), "both_ms": round(min(both), 4)}


def main() -> None:
    explain(__doc__)
    torch.set_num_threads(1)
    cells = [{"loss": "fixmatch", "form": "", "classes": n, **measure(fixmatch, n)} for n in CLASSES]
    for form in get_args(Form):
        for name, loss in losses(form).items():
            cells += [{"loss": name, "form": form, "classes": n, **measure(loss, n)} for n in CLASSES]
    record = {
        "labelled": LABELLED,
        "unlabelled": UNLABELLED,
        "device": f"{platform.machine()} CPU, 1 thread",
        "torch": torch.__version__,
        "cells": cells,
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    print("loss      form                " + "".join(f"{f'C = {n}':>18}" for n in CLASSES))
    for first in range(0, len(cells), len(CLASSES)):
        row = cells[first : first + len(CLASSES)]
        times = "".join(f"{cell['forward_ms']:9.2f} {cell['both_ms']:8.2f}" for cell in row)
        print(f"{row[0]['loss']:9} {row[0]['form']:20}{times}")
    print("milliseconds: forward, forward and backward")


if __name__ == "__main__":
    main()
