"""A network of one's own that cannot be trained is refused in one sentence, before a run is begun."""

import copy
import dataclasses
import threading

import pytest
import torch
from torch import nn

from cadr.cli.main import main
from cadr.errors import ConfigError
from cadr.training.user_model import check_user_model
from tests.training import tiny


class Net(nn.Module):
    """Three logits of four features, handed over as `hand` says."""

    def __init__(self, hand=lambda logits: logits, classes=3, features=4):
        super().__init__()
        self.hand, self.layer, self.norm = hand, nn.Linear(features, classes), nn.BatchNorm1d(classes)

    def forward(self, x):
        return self.hand(self.norm(self.layer(x)))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Net(lambda z: (z, z)), r"Net should return logits, a tensor \(n, classes\), not an object of type tuple"),
        (Net(lambda z: {"logits": z}), "not an object of type dict"),
        (Net(classes=5), r"expected \(2, 3\) for two examples, got \(2, 5\)"),
        (Net(lambda z: z[:, None]), r"got \(2, 1, 3\)"),
        (Net(lambda z: z[:-1]), r"got \(1, 3\)"),
        (Net(features=7), r"Net cannot be called with a tensor \(2, 4\): mat1 and mat2"),
        (nn.Identity(), "Identity has no parameters"),
        (nn.LazyLinear(3), "LazyLinear has parameters that are not made before its first call"),
        (Net(threading.Lock()), "Net cannot be copied"),
        (Net, "not the class Net; make an instance of it"),
        (lambda x: x, "should be an nn.Module, not an object of type function"),
    ],
)
def test_what_is_no_network_for_these_classes(model, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        tiny.finish(tiny.config(), tmp_path / "run", model=model)
    assert not list((tmp_path / "run").glob("*.toml"))


def test_a_good_one_is_left_as_it_was():
    model = Net(lambda z: z + torch.rand(()))
    before, mode, seed = copy.deepcopy(model.state_dict()), model.training, torch.random.get_rng_state()
    check_user_model(model, 3, (4,), torch.device("cpu"), "auto")
    assert model.training == mode
    assert torch.equal(torch.random.get_rng_state(), seed)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_it_is_called_as_in_training():
    """A part that is frozen in half precision runs under autocast, and fails without."""
    mixed = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 5).bfloat16().requires_grad_(False), nn.Linear(5, 3))
    check_user_model(mixed, 3, (4,), torch.device("cpu"), "bf16")
    with pytest.raises(ConfigError, match="Sequential cannot be called"):
        check_user_model(mixed, 3, (4,), torch.device("cpu"), "fp32")


@pytest.mark.parametrize("command", [["evaluate"], ["export"], ["predict", "x.npy", "--out", "p.csv"]])
def test_no_command_can_be_given_a_network_but_python_can(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = dataclasses.replace(tiny.config(10, evaluations=1), model=None)
    tiny.finish(settings, tmp_path / "run", model=Net())
    assert main([command[0], "run", *command[1:]]) == 2
    assert capsys.readouterr().err == (
        "cadr: run was trained from Python with a network of its own, which has to be given again, in Python: "
        "Predictor.load(run, model=…) predicts with it; evaluate_run, write_report and export_run take model=… too.\n"
    )


def test_nor_a_pool(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.finish(tiny.config(10, evaluations=1), tmp_path / "run")
    assert main(["evaluate", "run"]) == 2
    assert capsys.readouterr().err == (
        "cadr: clouds is neither a file or folder nor a benchmark; put it back where it was, or, if run was trained "
        "from Python on a pool, give that again there: evaluate_run and write_report take pool=….\n"
    )
