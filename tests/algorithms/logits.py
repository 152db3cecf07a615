"""Steps on logits given directly: the model is the identity, so that gradients are by the logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cadr.algorithms import Algorithm, Batch, Facts, Output
from tests.oracles import gradients as by_hand
from tests.oracles.softmax import Array

COUNTS = (50, 20, 8, 2)
FACTS = Facts(4, torch.tensor(COUNTS).float(), 300, 300, labelled_in_stream=True, steps=1024)


def views(seed: int = 0, labelled: int = 12, unlabelled: int = 40, scale: float = 2.5, step: int = 0) -> Batch:
    random = torch.Generator().manual_seed(seed)
    parts = [scale * torch.randn(n, 4, generator=random) for n in (labelled, unlabelled, unlabelled)]
    labels = torch.randint(0, 4, (labelled,), generator=random)
    index = torch.randperm(FACTS.num_unlabelled, generator=random)[:unlabelled]
    return Batch(parts[0], labels, parts[1], parts[2], index, step=torch.tensor(step))


def run(algorithm: Algorithm, batch: Batch, state: dict[str, torch.Tensor] | None = None) -> Output:
    return algorithm.loss(lambda x: x, batch, algorithm.init(FACTS) if state is None else state)


def gradients(algorithm: Algorithm, batch: Batch, state: dict[str, torch.Tensor] | None = None) -> dict[str, Array]:
    """Of the whole objective, by labelled, weak and strong logits."""
    leaves = {name: getattr(batch, name).clone().requires_grad_() for name in ("labelled", "weak", "strong")}
    output = run(algorithm, batch._replace(**leaves), state)
    total = torch.stack(list(output.terms.values())).sum()
    found = torch.autograd.grad(total, list(leaves.values()), materialize_grads=True)
    return dict(zip(leaves, map(array, found), strict=True))


def array(values: torch.Tensor) -> Array:
    return np.asarray(values.detach().double().numpy())


def close(ours: Any, expected: Any, tolerance: float = 1e-5) -> None:
    ours = array(ours) if isinstance(ours, torch.Tensor) else ours
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)


def slope(function: Any, at: torch.Tensor) -> Array:
    """Central differences of an oracle."""
    return by_hand.central(function, array(at))
