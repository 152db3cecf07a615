"""Class shares in one's own loop: P̂ divided by them, handed to the parts, is CADR with that target_prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import assume, given

from cadr import functional
from cadr.algorithms import CADR
from cadr.algorithms.base import Batch, Facts
from tests.functional.problems import FEW, Problem, close, gradients, leaf, problems, tensor
from tests.oracles import losses, marginal


def in_ones_own_loop(leaves, labels, prior, target, options):
    """As docs/own-loop.md has it; the loss and the new P̂."""
    of_labelled, of_weak, of_strong = leaves
    momentum = options.pop("momentum")
    new_prior = functional.update_prior(prior, of_weak, momentum)
    relative, new_relative = prior / target, new_prior / target
    loss = (
        functional.cap(of_labelled, labels, of_weak, relative)
        + functional.cai(of_weak, of_strong, new_relative, **options)
        + functional.supplement(of_labelled, of_weak, relative, new_relative, **options)
    )
    return loss, new_prior


@FEW
@given(problem=problems(max_classes=6, max_rows=12))
def test_it_is_cadr_with_a_target(problem: Problem):
    p = problem
    classes = len(p.prior)
    shares = np.random.default_rng(classes).dirichlet(np.full(classes, 5.0))
    new = marginal.update_prior(p.prior, p.weak, p.momentum)
    for logits in (p.weak, p.labelled):  # a confidence at its threshold may fall to either side of it
        assume((np.abs(losses.margin(logits, new / shares, p.threshold, p.beta)) > 1e-6).all())
    options: dict[str, Any] = {"momentum": p.momentum, "threshold": p.threshold, "beta": p.beta}
    algorithm = CADR(target_prior=tuple(shares.tolist()), **options)
    facts = Facts(
        num_classes=classes,
        labelled_counts=torch.ones(classes),
        num_examples=1000,
        num_unlabelled=1000,
        labelled_in_stream=True,
        steps=10,
    )
    state = algorithm.init(facts) | {"prior": tensor(p.prior), "log_target": tensor(np.log(classes * shares))}
    theirs, ours = ([leaf(x) for x in (p.labelled, p.weak, p.strong)] for _ in range(2))
    labels, index = torch.tensor(p.labels), torch.arange(len(p.weak))
    batch = Batch(labelled=theirs[0], labels=labels, weak=theirs[1], strong=theirs[2], index=index)
    output = algorithm.loss(lambda x: x, batch, state)
    total = torch.stack(list(output.terms.values())).sum()
    loss, new_prior = in_ones_own_loop(ours, labels, tensor(p.prior), tensor(shares), options)
    close(loss, total.detach().numpy())
    for found, expected in zip(gradients(loss, *ours), gradients(total, *theirs), strict=True):
        close(found, expected)
    close(new_prior, output.state["prior"].numpy())
