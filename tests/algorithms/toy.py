"""Small problems that train in seconds: the step as an engine would run it, without the engine."""

from __future__ import annotations

import copy
import dataclasses

import torch
from torch import nn

from cadr.algorithms import Batch, Facts, Refreshing


def mlp(inputs, classes, width=32, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.LeakyReLU(0.1), nn.Linear(width, classes)
        )


def batch(classes=4, labelled=6, unlabelled=20, features=5, seed=0, algorithm=None):
    """Random views, as many as the algorithm asks for (one weak and one strong if none is given)."""
    seen, weak, strong = 1, 1, 1
    if algorithm is not None:
        seen, weak, strong = algorithm.labelled_views, algorithm.weak_views, algorithm.strong_views
    random = torch.Generator().manual_seed(seed)
    sizes = [seen * labelled, weak * unlabelled, strong * unlabelled]
    x = torch.randn(sum(sizes), features, generator=random)
    labels = torch.randint(0, classes, (labelled,), generator=random)
    first, weak_rows, strong_rows = x.split(sizes)
    made = Batch(first, labels, weak_rows, strong_rows, torch.arange(unlabelled))
    return made if algorithm is None else made._replace(key=torch.tensor(seed), step=torch.tensor(50))


def suited(kind):
    """The algorithm with its defaults, but without what features cannot have."""
    algorithm = kind()
    return dataclasses.replace(algorithm, lambda_r=0.0) if algorithm.rotates else algorithm


def facts(classes=4, *, inside=True):
    counts = torch.arange(classes, 0, -1).float() ** 2
    return Facts(classes, counts, 1000, 1000 if inside else 1000 - int(counts.sum()), inside, steps=100)


def objective(output):
    return torch.stack(list(output.terms.values())).sum()


def train(algorithm, model, batches, known, lr=0.1, ema=0.99):
    """Plain SGD with momentum; yields (output, averaged model) after every step."""
    state, averaged = algorithm.init(known), copy.deepcopy(model)
    optimiser = torch.optim.SGD(model.parameters(), lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    for done, views in enumerate(batches, 1):
        output = algorithm.loss(model, views._replace(step=torch.tensor(done - 1)), state)
        optimiser.zero_grad()
        objective(output).backward()
        optimiser.step()
        state = output.state
        if isinstance(algorithm, Refreshing) and done % algorithm.refresh_every == 0:
            state = algorithm.refresh(state, done, known.steps)
        with torch.no_grad():
            for slow, fast in zip(averaged.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 1 - ema)
            for slow, fast in zip(averaged.buffers(), model.buffers(), strict=True):
                slow.copy_(fast)
        yield output, averaged
