"""Logits by a network that is known, some rows at a time; and the calibration that a run's folder holds, read back."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from cadr.algorithms import CADR
from cadr.config import Config
from cadr.errors import CheckpointError
from cadr.estimate.calibration import Calibration, uncalibrated
from cadr.inference.predictor import Predictor, read_calibration
from cadr.training.signature import InputSpec

SPEC = InputSpec("features", (4,), ("ant", "bee"), (3, 2), 10)
GOOD = {"temperature": 2.0, "correction": [0.1, -0.1], "prior_correction": 0.5}
GOOD |= {"error_before": 3.0, "error_after": None, "examples": 40}


@pytest.mark.parametrize("rows", [0, 1, 3, 10])
def test_rows_in_several_batches_keep_their_order(rows, monkeypatch):
    monkeypatch.setattr("cadr.inference.predictor.at_once", lambda *_: 3)
    network, centre, scale = torch.nn.Linear(4, 2), (0.0, 1.0, 2.0, 3.0), (1.0, 2.0, 3.0, 4.0)
    spec = dataclasses.replace(SPEC, centre=centre, scale=scale)
    predictor = Predictor(network, spec, uncalibrated(2), Config("random", CADR()), torch.device("cpu"), 0)
    x = np.random.default_rng(1).normal(size=(rows, 4)).astype(np.float32)
    weight, bias = (parameter.detach().numpy() for parameter in (network.weight, network.bias))
    np.testing.assert_allclose(
        predictor.logits(x), (x - np.array(centre)) / np.array(scale) @ weight.T + bias, atol=1e-5
    )


def test_what_was_written_is_read_and_need_not_be_there(tmp_path):
    assert read_calibration(tmp_path, SPEC) == uncalibrated(2)
    (tmp_path / "calibration.json").write_text(json.dumps(GOOD))
    assert read_calibration(tmp_path, SPEC) == Calibration(2.0, (0.1, -0.1), 0.5, 3.0, None, 40)


@pytest.mark.parametrize(
    "damage",
    [{"temperature": 0.0}, {"temperature": -1.0}, {"correction": [0.1]}, {"correction": None}, {"more": 1}],
    ids=str,
)
def test_what_cannot_be_used_is_one_sentence(damage, tmp_path):
    (tmp_path / "calibration.json").write_text(json.dumps(GOOD | damage))
    with pytest.raises(CheckpointError, match=r"calibration\.json cannot be used \(.+\); delete it to predict uncali"):
        read_calibration(tmp_path, SPEC)
