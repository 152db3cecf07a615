"""Handwritten digits with γ = 50: every method learns in seconds, and the class-aware ones repair what FixMatch loses.

Seeds are fixed and share nothing with those that any default was chosen on.
"""

from __future__ import annotations

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from cadr.algorithms import ALGORITHMS, CADR, Batch, Facts, SimPro
from tests.algorithms import toy

COUNTS = [math.ceil(50 * 50 ** (-c / 9)) for c in range(10)]
STEPS, LABELLED, UNLABELLED = 400, 32, 128
# Its published adjustment is that of a thousand times as many steps, in which the estimated distributions settle.
SHORT_RUNS = {"simpro": SimPro(tau=1.0)}


def _affine(images, random, turn, stretch, shift):
    """Each image rotated (degrees), scaled and moved (pixels) by its own random amount."""
    n = len(images)
    noise = torch.rand(4, n, generator=random) * 2 - 1
    angle, scale = noise[0] * math.radians(turn), 1 + stretch * noise[1]
    rows = [scale * angle.cos(), -scale * angle.sin(), noise[2] * shift / 4]
    rows += [scale * angle.sin(), scale * angle.cos(), noise[3] * shift / 4]
    grid = F.affine_grid(torch.stack(rows, 1).view(n, 2, 3), [n, 1, 8, 8], align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def _weak(images, random):
    moved = _affine(images, random, turn=0, stretch=0, shift=1)
    return moved + 0.05 * torch.randn(moved.shape, generator=random)


def _strong(images, random):
    moved = _affine(images, random, turn=30, stretch=0.2, shift=1.5)
    return moved + 0.2 * torch.randn(moved.shape, generator=random)


@functools.cache
def _digits():
    raw = load_digits()
    return torch.from_numpy(raw.images).float().unsqueeze(1) / 8 - 1, torch.from_numpy(raw.target)


@functools.cache
def recalls(algorithm, seed):
    """Per-class recall of the averaged model on 530 balanced images that were in neither stream."""
    images, labels = _digits()
    random = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(labels), generator=random)
    rows = [order[labels[order] == c] for c in range(10)]
    test, train = torch.cat([r[:53] for r in rows]), torch.cat([r[53:] for r in rows])
    labelled = torch.cat([r[53 : 53 + n] for r, n in zip(rows, COUNTS, strict=True)])

    counts = torch.tensor(COUNTS).float()
    weights = (1 / counts if algorithm.balanced_labels else torch.ones(10)).repeat_interleave(torch.tensor(COUNTS))

    def batches():
        for _ in range(STEPS):
            chosen = labelled[torch.multinomial(weights, LABELLED, replacement=True, generator=random)]
            index = torch.randperm(len(train), generator=random)[:UNLABELLED]
            stream = images[train[index]]
            first, weak, strong = _weak(images[chosen], random), _weak(stream, random), _strong(stream, random)
            more = [_strong(images[chosen], random) for _ in range(algorithm.labelled_views - 1)]
            yield Batch(torch.cat([first, *more]), labels[chosen], weak, strong, index)

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10))
    known = Facts(10, counts, len(train), len(train), labelled_in_stream=True, steps=STEPS)
    *_, (_, averaged) = toy.train(algorithm, model, batches(), known)
    with torch.no_grad():
        predicted = averaged.eval()(images[test]).argmax(1)
    return tuple((predicted == labels[test]).float().view(10, 53).mean(1).tolist())


def _accuracy(algorithm, seed):
    return sum(recalls(algorithm, seed)) / 10


@pytest.mark.parametrize("name", [n for n in ALGORITHMS if n not in ("pi_model", "mixmatch", "remixmatch")])
def test_learns(name):
    algorithm = SHORT_RUNS.get(name) or ALGORITHMS[name]()
    assert _accuracy(algorithm, 21) > 0.75


def test_the_valid_form_learns():
    assert _accuracy(CADR(propensity="class"), 21) > 0.75


@pytest.mark.parametrize("name", ["cap", "cai", "cap_cai", "cadr"])
def test_beats_fixmatch_on_every_seed(name):
    for seed in (21, 22, 23):
        assert _accuracy(ALGORITHMS[name](), seed) > _accuracy(ALGORITHMS["fixmatch"](), seed)
