"""The layer that tells the classes apart, and what comes out of a network's middle."""

import pytest
import torch
from torch import nn

from cadr.models import MODELS
from cadr.models.feature_hooks import arriving, behind_middle, class_head
from cadr.models.networks import Residual

# channels or features of the last stage but one, of each of its units
MIDDLE = {
    "wrn-28-2": [64] * 4,
    "wrn-28-8": [256] * 4,
    "wrn-37-2": [128] * 4,
    "resnet-18": [256] * 2,
    "convnet": [64],
    "mlp": [128],
}


@pytest.mark.parametrize("name", MODELS)
def test_of_our_networks(name):
    shape = (3, 32, 32) if name != "mlp" else (20,)
    model = MODELS[name]().build(7, shape).eval()
    with torch.no_grad(), arriving(behind_middle(model)) as features:
        model(torch.zeros(2, *shape))
        model(torch.zeros(1, *shape))
    shapes = [[tuple(part.shape) for part in layer] for layer in features]
    assert shapes == [[(2, wide), (1, wide)] for wide in MIDDLE[name]]
    with torch.no_grad():
        model(torch.zeros(1, *shape))
    assert [len(layer) for layer in features] == [2] * len(shapes)
    head = model.get_submodule(class_head(model, 7))
    assert isinstance(head, nn.Linear)
    assert head is list(model.modules())[-1]


def test_every_unit_of_the_stage_is_looked_at():
    model = MODELS["resnet-18"]().build(3, (3, 32, 32)).eval()
    assert isinstance(model, Residual)
    x, middle = torch.rand(4, 3, 32, 32), []
    with torch.no_grad(), arriving(behind_middle(model)) as features:
        model(x)
    with torch.no_grad():
        flowing = model.stem(x)
        for number, unit in enumerate(model.units):
            flowing = unit(flowing)
            if number in (4, 5):  # of two units a stage, those of the third of four stages
                middle.append(flowing.mean((2, 3)))
    for layer, expected in zip(features, middle, strict=True):
        torch.testing.assert_close(layer[0], expected)


def test_pixels_are_averaged():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.Flatten(), nn.Linear(5 * 4 * 4, 2))
    assert behind_middle(model) == [model[2]]
    x = torch.randn(5, 3, 8, 8)
    with torch.no_grad(), arriving([model[2]]) as features:
        model(x)
        torch.testing.assert_close(features[0][0], model[:2](x).mean((2, 3)))


def test_a_single_hidden_layer_has_the_features_before_it():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    assert behind_middle(model) == [model[1]]


def test_features_of_any_shape_are_rows():
    model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 5), nn.Flatten(), nn.Linear(10, 3))
    with torch.no_grad(), arriving([model[1]]) as features:
        model(torch.zeros(7, 2, 4))
    assert features[0][0].shape == (7, 12)


def test_a_layer_that_runs_twice_has_no_one_place():
    twice = nn.Linear(4, 4)
    assert behind_middle(nn.Sequential(twice, nn.ReLU(), twice, nn.Linear(4, 3))) == []


@pytest.mark.parametrize("model", [nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 3)), nn.Sequential()])
def test_networks_without_a_middle(model):
    assert behind_middle(model) == []


def test_no_head():
    assert class_head(nn.Sequential(nn.Linear(4, 3)), 5) == ""
