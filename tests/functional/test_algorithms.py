"""Each algorithm, through its own loss, equals the sum of its oracles' terms, values and gradients.

The model is the identity, so the batch's views are the logits.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from hypothesis import assume, given

from cadr.algorithms import ALGORITHMS
from cadr.algorithms.base import Batch, Facts
from tests.functional.problems import FEW, Problem, close, gradients, leaf, problems, tensor
from tests.oracles import gradients as by_hand
from tests.oracles import losses, marginal
from tests.oracles.softmax import Array, cross_entropy, softmax

FORM = "straight_through"


def expected(name: str, p: Problem) -> tuple[float, list[Array]]:
    """The value, and the gradients by labelled, weak and strong logits."""
    new = marginal.update_prior(p.prior, p.weak, p.momentum)
    labelled = (p.labelled, p.labels)
    value, by = cross_entropy(*labelled), [by_hand.cross_entropy(*labelled), np.zeros_like(p.weak)]
    if name in ("cap", "cap_cai", "cadr"):
        value, by = losses.cap(*labelled, p.weak, p.prior, FORM), list(by_hand.cap(*labelled, p.weak, p.prior, FORM))
    if name == "cadr":
        rest = (p.labelled, p.weak, p.prior, new, p.threshold, p.beta, FORM)
        value, by[1] = value + losses.supplement(*rest), by[1] + by_hand.supplement(*rest)
    if name == "supervised":
        return value, [*by, np.zeros_like(p.strong)]
    class_aware = name in ("cai", "cap_cai", "cadr")
    if class_aware:
        value += losses.cai(p.weak, p.strong, new, p.threshold, p.beta)
    else:
        value += losses.fixmatch(p.weak, p.strong, p.threshold)
    used = (p.weak, p.strong, new, p.threshold, p.beta if class_aware else 0.0)
    return value, [*by, by_hand.cai(*used)]


@pytest.mark.parametrize("name", ["supervised", "fixmatch", "cap", "cai", "cap_cai", "cadr"])
@FEW
@given(problem=problems(max_classes=60, max_rows=12))
def test_loss(name: str, problem: Problem):
    p = problem
    new = marginal.update_prior(p.prior, p.weak, p.momentum)
    for logits in (p.weak, p.labelled):
        assume((np.abs(losses.margin(logits, new, p.threshold, p.beta)) > 1e-9).all())
        assume((np.abs(softmax(logits).max(axis=1) - p.threshold) > 1e-9).all())
    fields = set(inspect.signature(ALGORITHMS[name]).parameters)
    options = {k: getattr(p, k) for k in ("momentum", "threshold", "beta") if k in fields}
    algorithm = ALGORITHMS[name](**options)
    classes = len(p.prior)
    facts = Facts(
        num_classes=classes,
        labelled_counts=torch.ones(classes),
        num_examples=1000,
        num_unlabelled=1000,
        labelled_in_stream=True,
        steps=10,
    )
    state = {k: v.double() if v.is_floating_point() else v for k, v in algorithm.init(facts).items()}
    state["prior"] = tensor(p.prior)
    leaves = [leaf(x) for x in (p.labelled, p.weak, p.strong)]
    batch = Batch(
        labelled=leaves[0],
        labels=torch.tensor(p.labels),
        weak=leaves[1],
        strong=leaves[2],
        index=torch.arange(len(p.weak)),
    )
    output = algorithm.loss(lambda x: x, batch, state)
    value, by = expected(name, p)
    total = torch.stack(list(output.terms.values())).sum()
    close(total, value)
    for found, gradient in zip(gradients(total, *leaves), by, strict=True):
        close(found, gradient)
    if "momentum" in fields:
        close(output.state["prior"], new, atol=1e-14)
    np.testing.assert_array_equal(output.pseudo.numpy(), losses.pseudo_labels(p.weak))
