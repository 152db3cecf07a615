"""A network that says how its pixels are scaled gets them so: in training, in prediction and in an export."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch import nn

from cadr.augment import ImageViews
from cadr.data import from_arrays
from cadr.inference.export import export_run
from cadr.inference.predictor import Predictor
from cadr.models import normalised
from tests.training import tiny

MEAN, STD = (0.2, 0.4, 0.6), (0.1, 0.2, 0.3)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pixel_mean", torch.tensor(MEAN).view(3, 1, 1))
        self.register_buffer("pixel_std", torch.tensor(STD).view(3, 1, 1))
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (60, 4, 4, 3), dtype=np.uint8)
    images[:, 0, 0], images[:, 1, 1] = 0, 255
    labels = np.where(np.arange(60) < 24, np.arange(60) % 2, -1)
    folder, model, seen = tmp_path_factory.mktemp("scaled") / "run", Scaled(), []
    model.register_forward_pre_hook(lambda _, given: seen.extend([given[0].amin((0, 2, 3)), given[0].amax((0, 2, 3))]))
    views = ImageViews(flip=False, shift=0)
    config = dataclasses.replace(tiny.config(), data="pictures", views=views, model=None)
    tiny.finish(config, folder, pool=from_arrays(images, labels, name="pictures"), model=model)
    return folder, torch.stack(seen), images


def test_the_default_is_what_it_was():
    images = torch.arange(256, dtype=torch.uint8).view(1, 16, 16, 1).expand(-1, -1, -1, 3)
    expected = images.permute(0, 3, 1, 2).float() / 127.5 - 1.0
    assert torch.equal(normalised(images), expected)
    assert torch.equal(normalised(images, nn.Identity()), expected)


def test_training_prediction_and_export(run, tmp_path):
    folder, seen, images = run
    mean, std = torch.tensor(MEAN), torch.tensor(STD)
    torch.testing.assert_close(seen.amin(0), (0 - mean) / std)
    torch.testing.assert_close(seen.amax(0), (1 - mean) / std)
    predictor = Predictor.load(folder, model=Scaled(), device="cpu")
    by_hand = (images / 255 - np.array(MEAN)) / np.array(STD)
    with torch.no_grad():
        expected = predictor.model(torch.tensor(by_hand.transpose(0, 3, 1, 2), dtype=torch.float32))
    torch.testing.assert_close(predictor.logits(images), expected, atol=1e-5, rtol=1e-5)
    export_run(folder, tmp_path, ("safetensors", "torch"), model=Scaled())  # compares itself with the predictor
    facts = json.loads((tmp_path / "model.json").read_text())["preprocessing"]
    assert facts["formula"].startswith("(x / 255 - mean) / std")
    np.testing.assert_allclose([facts["mean"], facts["std"]], [MEAN, STD], rtol=1e-6)
