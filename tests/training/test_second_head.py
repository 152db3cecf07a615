"""A second head, passes that are not remembered, and methods that turn images."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cadr.algorithms import ALGORITHMS, MixMatch, PiModel, ReMixMatch
from cadr.augment import ImageViews
from cadr.config import Config, Training
from cadr.data import open_data
from cadr.data.pool import Pool
from cadr.data.protocols import Uniform
from cadr.errors import ConfigError
from cadr.inference import evaluate_run
from cadr.inference.predictor import Predictor
from cadr.models import MLP, ConvNet
from cadr.optim import SGD
from cadr.training import train
from cadr.training.auxiliary_head import widen
from cadr.training.network import Network
from tests.training import tiny


def test_a_second_head_is_there_in_training_only():
    model = MLP((8,)).build(3, (4,))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x = torch.randn(6, 4)
    model.eval()
    expected = model(x)
    widen(model, 3, 4, seed=1)
    assert torch.equal(model(x), expected)
    after = model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert set(after) - set(before) == {"4.auxiliary_weight", "4.auxiliary_bias"}
    model.train()
    out = model(x)
    assert out.shape == (6, 7)
    (gradient,) = torch.autograd.grad(out[:, 3:].sum(), model.get_parameter("4.auxiliary_weight"))
    assert gradient.abs().sum() > 0
    assert widen(model, 3, 4, seed=1) is model
    assert model(x).shape == (6, 7)  # not widened twice


def test_a_second_head_is_a_function_of_the_seed():
    models = [widen(MLP((8,)).build(3, (4,)), 3, 4, seed) for seed in (1, 1, 2)]
    heads = [model.get_parameter("4.auxiliary_weight") for model in models]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


@pytest.mark.parametrize("model", [nn.Sequential(nn.Conv2d(3, 3, 8), nn.Flatten()), nn.Linear(4, 3)])
def test_a_model_without_a_place_for_it_is_refused(model):
    with pytest.raises(ConfigError, match="no linear layer with 3 outputs"):
        widen(model, 3, 4, seed=1)


def test_an_untracked_pass_changes_no_buffer_and_gives_the_same_gradient():
    network = tiny_network()
    x = torch.randn(8, 4)
    passes = Network(network, half=False)
    before = {name: value.clone() for name, value in network.named_buffers()}
    tensors = dict(network.named_buffers())
    first = passes.untracked(x)
    second = passes.untracked(x + 1)  # before the backward pass of the first
    gradients = torch.autograd.grad(first.square().sum() + second.square().sum(), list(network.parameters()))
    assert all(torch.equal(value, before[name]) for name, value in network.named_buffers())
    assert all(value is tensors[name] for name, value in network.named_buffers())
    total = passes(x).square().sum() + passes(x + 1).square().sum()
    torch.testing.assert_close(gradients, torch.autograd.grad(total, list(network.parameters())))
    assert not torch.equal(network.get_buffer("1.running_mean"), before["1.running_mean"])


def tiny_network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def test_turning_features_is_refused_in_a_sentence(tmp_path):
    settings = dataclasses.replace(tiny.config(), algorithm=ReMixMatch(strong_views=2))
    with pytest.raises(ConfigError, match="remixmatch turns square images, but clouds holds features"):
        tiny.finish(settings, tmp_path / "refused")
    without = dataclasses.replace(settings, algorithm=ReMixMatch(strong_views=2, lambda_r=0.0))
    assert tiny.finish(tiny.replace(without, steps=5), tmp_path / "taken")["kind"] == "finished"


def test_turning_oblong_images_is_refused(tmp_path):
    images = np.random.default_rng(0).integers(256, size=(30, 6, 8, 3)).astype(np.uint8)
    pool = Pool(images, np.where(np.arange(30) < 9, np.arange(30) % 3, -1), ("a", "b", "c"), "oblong")
    settings = Config("oblong", ReMixMatch(), model=ConvNet(4), training=Training(steps=2, batch=4, ratio=1))
    with pytest.raises(ConfigError, match="but oblong holds images of 8×6 pixels"):
        list(train(settings, tmp_path, pool=pool))


LEARNERS = {
    "pi_model": PiModel(),
    "mixmatch": MixMatch(lambda_u=10.0),  # with its 100 a run this short follows the first guesses
    "remixmatch": ReMixMatch(strong_views=2),
}


def _digits(algorithm, **training):
    """100 labels missing at random: what these methods were made for."""
    fixed: dict[str, Any] = {"batch": 32, "ratio": 1, "evaluations": 1, "device": "cpu", "seed": 21}
    return Config(
        "digits",
        algorithm,
        protocol=Uniform(n=100),
        model=MLP(),
        views=ImageViews(flip=False),
        optimiser=SGD(lr=0.1, ema=0.99),
        training=Training(**(fixed | training)),
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_learns_digits(name, tmp_path):
    assert type(LEARNERS[name]) is ALGORITHMS[name]
    *_, last = train(_digits(LEARNERS[name], steps=300), tmp_path, pool=open_data("digits"))
    assert last["result"]["last"] > 80


def test_a_run_with_a_second_head_continues_and_can_be_used(tmp_path):
    pool, settings = open_data("digits"), _digits(LEARNERS["remixmatch"], steps=6, batch=8, checkpoint_seconds=0.0)
    *_, whole = train(settings, tmp_path / "whole", pool=pool)
    records = train(settings, tmp_path / "stopped", pool=pool)
    next(records)
    records.close()
    list(train(settings, tmp_path / "stopped", pool=pool))
    tiny.assert_same(tmp_path / "whole", tmp_path / "stopped")
    tensors = tiny.tensors(tmp_path / "whole")
    assert [name for name in tensors if "auxiliary" in name and not name.startswith("training.")] == []
    assert evaluate_run(tmp_path / "whole", pool=pool)["accuracy"] == whole["result"]["last"]
    predictor = Predictor.load(tmp_path / "whole", device="cpu")
    assert pool.test_examples is not None
    assert pool.test_labels is not None
    logits = predictor.logits(pool.test_examples)
    assert logits.shape == (530, 10)
    right = (logits.argmax(1).numpy() == pool.test_labels).mean()
    assert 100 * right == pytest.approx(whole["result"]["last"], abs=1e-3)
