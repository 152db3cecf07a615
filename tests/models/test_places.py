"""The layer that tells the classes apart, and what arrives at the stage before it."""

import pytest
import torch
from torch import nn

from cadr.errors import ConfigError
from cadr.models import MLP, MODELS
from cadr.models.places import class_head, last_stage

# channels or features that flow into the last stage: those of the stage before it
ARRIVING = {"wrn-28-2": 64, "wrn-28-8": 256, "wrn-37-2": 128, "resnet-18": 256, "convnet": 64, "mlp": 128}


@pytest.mark.parametrize("name", MODELS)
def test_of_our_networks(name):
    shape = (3, 32, 32) if name != "mlp" else (20,)
    model = MODELS[name]().build(7, shape).eval()
    sizes = []
    last_stage(model).register_forward_pre_hook(lambda _stage, arrived: sizes.append(arrived[0].shape[1]))
    with torch.no_grad():
        model(torch.zeros(1, *shape))
    assert sizes == [ARRIVING[name]]
    head = model.get_submodule(class_head(model, 7))
    assert isinstance(head, nn.Linear)
    assert head is list(model.modules())[-1]


def test_a_single_hidden_layer_has_the_features_before_it():
    model = MLP((16,)).build(3, (4,))
    assert last_stage(model).in_features == 4


@pytest.mark.parametrize("model", [nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 3)), nn.Sequential()])
def test_networks_without_a_stage_before_the_last(model):
    with pytest.raises(ConfigError, match="a layer before its last one"):
        last_stage(model)


def test_no_head():
    assert class_head(nn.Sequential(nn.Linear(4, 3)), 5) == ""
