"""Networks that are frozen in part or share weights: what a run saves of them is what every door gives back."""

import copy
import dataclasses
import json

import numpy as np
import pytest
import torch
from torch import nn

from cadr.errors import CheckpointError, ConfigError
from cadr.inference.evaluation import evaluate_run
from cadr.inference.export import export_run
from cadr.inference.predictor import Predictor
from cadr.report.build import write_report
from cadr.training import train
from cadr.training.state import load_averaged
from tests.training import tiny


def frozen():
    return nn.Sequential(nn.Linear(4, 16).requires_grad_(False), nn.ReLU(), nn.Linear(16, 3))


class Tied(nn.Module):
    """One matrix there and back again, and one layer under two names."""

    def __init__(self):
        super().__init__()
        self.there, self.back, self.head = nn.Linear(4, 4, bias=False), nn.Linear(4, 4), nn.Linear(4, 3)
        self.back.weight = self.there.weight
        self.norm = self.same = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.head(self.same(self.back(self.norm(self.there(x)).relu())))


class Lazy(nn.Module):
    """Freezes its body when it is first called, in training alone or at all."""

    def __init__(self, in_training=False):
        super().__init__()
        self.in_training, self.body, self.head = in_training, nn.Linear(4, 16), nn.Linear(16, 3)

    def forward(self, x):
        if self.training or not self.in_training:
            self.body.requires_grad_(False)
        return self.head(self.body(x).relu())


class Passing(nn.Module):
    """Counts its calls in a buffer that PyTorch does not count as state."""

    calls: torch.Tensor

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(()), persistent=False)

    def forward(self, x):
        self.calls.add_(float(self.training))
        return self.layer(x)


class Mixed(nn.Module):
    """Frozen in half precision, as large backbones are."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 16).bfloat16().requires_grad_(False), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x.to(self.body.weight.dtype)).float().relu())


KINDS = {
    "frozen": frozen,
    "tied": Tied,
    "lazily": Lazy,
    "lazily, in training": lambda: Lazy(in_training=True),
    "passing": Passing,
    "mixed": Mixed,
}
SETTINGS = dataclasses.replace(tiny.config(30, precision="fp32"), model=None)


def made(kind, seed):
    torch.manual_seed(seed)
    return KINDS[kind]()


def stopped(out, model, at):
    records = train(SETTINGS, out, tiny.pool(), model)
    next(record for record in records if record["step"] >= at and record["kind"] == "train")
    records.close()


@pytest.mark.parametrize("kind", KINDS)
def test_every_door_gives_the_trained_network_back(kind, tmp_path):
    """To a network of the same kind with other weights. What it should say is worked out beside the package."""
    pool, trained = tiny.pool(), made(kind, 1)
    begun = copy.deepcopy(trained.state_dict())
    last = tiny.finish(SETTINGS, tmp_path / "run", model=trained)
    stored, state = tiny.tensors(tmp_path / "run"), trained.state_dict()
    for name, value in state.items():
        if f"frozen.{name}" in stored:
            assert stored[f"frozen.{name}"].equal(begun[name]), name  # it did not train
            assert value.equal(begun[name]), name
    names = {tensor.data_ptr(): name for name, tensor in reversed(state.items())}  # the first of each tensor
    kinds = ("average", "frozen", "buffer")
    names = {name: names[tensor.data_ptr()] for name, tensor in state.items()}
    expected = {name: next(stored[f"{k}.{n}"] for k in kinds if f"{k}.{n}" in stored) for name, n in names.items()}
    reference = made(kind, 1)
    reference.load_state_dict(expected)
    x = (torch.tensor(pool.examples) - torch.tensor(pool.examples).mean(0)) / torch.tensor(pool.examples).std(
        0, correction=0
    )
    with torch.no_grad():
        logits = reference.eval()(x)

    predictor = Predictor.load(tmp_path / "run", made(kind, 2), "cpu")
    torch.testing.assert_close(predictor.logits(pool.examples), logits, rtol=1e-4, atol=1e-4)
    right = (logits.argmax(1).numpy()[45:] == pool.test_labels).mean() * 100
    assert last["result"]["last"] == pytest.approx(right, abs=1e-4)
    again = evaluate_run(tmp_path / "run", pool, made(kind, 3), "cpu")
    assert again["accuracy"] == pytest.approx(right, abs=1e-4)
    page = tmp_path / "report.html"
    assert write_report([tmp_path / "run"], page, pool=pool, model=made(kind, 4), device="cpu") == []

    export_run(tmp_path / "run", tmp_path / "out", ("safetensors", "torch"), made(kind, 5))
    from safetensors.torch import load_file

    exported = made(kind, 6)
    exported.load_state_dict(load_file(tmp_path / "out" / "model.safetensors"))
    facts = json.loads((tmp_path / "out" / "model.json").read_text())["preprocessing"]
    x = (torch.tensor(pool.examples) - torch.tensor(facts["centre"])) / torch.tensor(facts["scale"])
    with torch.no_grad():
        torch.testing.assert_close(exported.eval()(x), logits, rtol=1e-4, atol=1e-4)
    program = torch.export.load(tmp_path / "out" / "model.pt2").module()
    found = program(torch.tensor(pool.examples)).detach().numpy()
    np.testing.assert_allclose(found, predictor.probabilities(pool.examples), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_goes_on_bit_for_bit_with_a_network_of_other_weights(kind, tmp_path):
    tiny.finish(SETTINGS, tmp_path / "at once", model=made(kind, 1))
    stopped(tmp_path / "stopped", made(kind, 1), 12)
    tiny.finish(SETTINGS, tmp_path / "stopped", model=made(kind, 2))
    tiny.assert_same(tmp_path / "at once", tmp_path / "stopped")


@pytest.mark.parametrize("kind", ["frozen", "lazily"])
def test_the_same_network_may_be_given_again(kind, tmp_path):
    """Though it has been called by now."""
    model = made(kind, 1)
    stopped(tmp_path / "run", model, 12)
    assert tiny.finish(SETTINGS, tmp_path / "run", model=model)["step"] == 30


def test_tied_weights_stay_tied_and_train_once(tmp_path):
    model = made("tied", 1)
    tiny.finish(SETTINGS, tmp_path / "run", model=model)
    assert model.back.weight is model.there.weight
    stored = tiny.tensors(tmp_path / "run")
    assert [name for name in stored if name.endswith(("there.weight", "back.weight"))] == [
        "weight.there.weight",
        "velocity.there.weight",
        "average.there.weight",
    ]


def test_a_network_that_lacks_something_is_refused_and_left_alone(tmp_path):
    tiny.finish(SETTINGS, tmp_path / "run", model=made("frozen", 1))
    stored = tiny.tensors(tmp_path / "run")
    wider = nn.Sequential(nn.Linear(4, 17), nn.ReLU(), nn.Linear(17, 3))
    before = copy.deepcopy(wider.state_dict())
    with pytest.raises(CheckpointError, match=r"The checkpoint in run is of another model: 0\.weight does not fit"):
        load_averaged(wider, stored, "run")
    assert all(value.equal(before[name]) for name, value in wider.state_dict().items())
    for door in (
        lambda m: Predictor.load(tmp_path / "run", m),
        lambda m: evaluate_run(tmp_path / "run", tiny.pool(), m),
    ):
        with pytest.raises(CheckpointError, match=r"is of another model: 0\.weight does not fit"):
            door(nn.Sequential(nn.Linear(4, 17), nn.ReLU(), nn.Linear(17, 3)))


def test_a_checkpoint_from_before_frozen_weights_were_saved_is_refused(tmp_path):
    """Its averaged network cannot be told: the frozen part was that of whatever network was given."""
    tiny.finish(SETTINGS, tmp_path / "run", model=made("frozen", 1))
    stored = {name: value for name, value in tiny.tensors(tmp_path / "run").items() if not name.startswith("frozen.")}
    with pytest.raises(CheckpointError, match=r"0\.weight does not fit"):
        load_averaged(frozen(), stored, "run")


def test_what_is_no_state_need_not_fit():
    stored = {
        "average.layer.weight": torch.ones(3, 4),
        "average.layer.bias": torch.ones(3),
        "buffer.calls": torch.ones(9),
    }
    model = load_averaged(Passing(), stored, "run")
    assert model.calls == 0
    assert model.layer.weight.eq(1).all()
    assert load_averaged(Passing(), stored | {"buffer.calls": torch.tensor(9.0)}, "run").calls == 9


def test_a_network_all_frozen_has_nothing_to_train(tmp_path):
    with pytest.raises(ConfigError, match="no trainable parameters"):
        tiny.finish(SETTINGS, tmp_path / "run", model=nn.Linear(4, 3).requires_grad_(False))


def test_a_network_is_asked_as_in_training_too(tmp_path):
    class Two(nn.Module):
        """Hands over a second opinion while it learns, as Inception does."""

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            return (self.layer(x), self.layer(x)) if self.training else self.layer(x)

    with pytest.raises(ConfigError, match=r"Two should return logits, .* not an object of type tuple"):
        tiny.finish(SETTINGS, tmp_path / "run", model=Two())
