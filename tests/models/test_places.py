"""The layer that tells the classes apart, and what arrives at the stage before it."""

import pytest
import torch
from torch import nn

from cadr.models import MODELS
from cadr.models.places import arriving, class_head, last_stage

# channels or features that flow into the last stage: those of the stage before it
ARRIVING = {"wrn-28-2": 64, "wrn-28-8": 256, "wrn-37-2": 128, "resnet-18": 256, "convnet": 64, "mlp": 128}


@pytest.mark.parametrize("name", MODELS)
def test_of_our_networks(name):
    shape = (3, 32, 32) if name != "mlp" else (20,)
    model = MODELS[name]().build(7, shape).eval()
    stage = last_stage(model)
    assert stage is not None
    with torch.no_grad(), arriving(stage) as features:
        model(torch.zeros(2, *shape))
        model(torch.zeros(1, *shape))
    assert [tuple(part.shape) for part in features] == [(2, ARRIVING[name]), (1, ARRIVING[name])]
    with torch.no_grad():
        model(torch.zeros(1, *shape))
    assert len(features) == 2
    head = model.get_submodule(class_head(model, 7))
    assert isinstance(head, nn.Linear)
    assert head is list(model.modules())[-1]


def test_pixels_are_averaged():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.Flatten(), nn.Linear(5 * 4 * 4, 2))
    assert last_stage(model) is model[2]
    x = torch.randn(5, 3, 8, 8)
    with torch.no_grad(), arriving(model[2]) as features:
        model(x)
        torch.testing.assert_close(features[0], model[:2](x).mean((2, 3)))


def test_a_single_hidden_layer_has_the_features_before_it():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    assert last_stage(model) is model[1]


def test_features_of_any_shape_are_rows():
    model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 5), nn.Flatten(), nn.Linear(10, 3))
    with torch.no_grad(), arriving(model[1]) as features:
        model(torch.zeros(7, 2, 4))
    assert features[0].shape == (7, 12)


def test_a_layer_that_runs_twice_is_no_stage():
    twice = nn.Linear(4, 4)
    assert last_stage(nn.Sequential(twice, nn.ReLU(), twice, nn.Linear(4, 3))) is None


@pytest.mark.parametrize("model", [nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 3)), nn.Sequential()])
def test_networks_without_a_stage_before_the_last(model):
    assert last_stage(model) is None


def test_no_head():
    assert class_head(nn.Sequential(nn.Linear(4, 3)), 5) == ""
