"""Whole runs with Muon: interrupted anywhere they end as they would have, and they learn."""

from __future__ import annotations

import dataclasses

import pytest

from cadr.config import Config
from cadr.errors import ConfigError
from cadr.models import MLP
from cadr.optim import Muon
from cadr.training import train
from tests.training import tiny


def settings() -> Config:
    return dataclasses.replace(tiny.config(), model=MLP((16, 16)), optimiser=Muon(lr=0.1, ema=0.9))


def test_continued_run_ends_as_one_that_was_not_interrupted(tmp_path):
    last = tiny.finish(settings(), tmp_path / "whole")
    for record in train(settings(), tmp_path / "broken", pool=tiny.pool()):
        if record["kind"] == "train" and record["step"] >= 25:
            break
    tiny.finish(settings(), tmp_path / "broken")
    whole, broken = tiny.tensors(tmp_path / "whole"), tiny.tensors(tmp_path / "broken")
    assert whole.keys() == broken.keys()
    assert all(broken[name].equal(value) for name, value in whole.items())
    assert last["result"]["last"] > 80


def test_configuration_keeps_the_optimiser():
    written = settings().to_toml()
    assert 'optimiser = "muon"' in written
    assert Config.from_toml(written) == settings()
    assert Config.from_toml('data = "x"\nalgorithm = "cadr"\noptimiser = "muon"\nmuon_lr = 1').optimiser == Muon(
        muon_lr=1.0
    )


@pytest.mark.parametrize("wrong", [{"muon_lr": -0.1}, {"muon_decay": float("nan")}, {"muon_momentum": 1.5}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Muon(**wrong)
