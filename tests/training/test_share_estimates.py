"""`--target-prior estimated`: what training aims at follows what it sees, and a run that is continued does the same."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from cadr.algorithms import CADR, FixMatch
from cadr.cli.main import main
from cadr.config import Config
from cadr.data.pool import Pool
from cadr.errors import ConfigError
from cadr.models import MLP
from cadr.training import checkpoint, train
from tests.training import tiny

ESTIMATED = CADR(target_prior="estimated")


def config(algorithm=ESTIMATED, **changes) -> Config:
    return dataclasses.replace(tiny.config(**changes), algorithm=algorithm, model=MLP((16, 16)))


def unequal(n: int = 300) -> Pool:
    random = np.random.default_rng(0)
    truth = random.permutation(np.repeat([0, 1, 2], [n // 10, n // 5, n - n // 10 - n // 5]))
    examples = (random.normal(size=(3, 4)) * 3)[truth] + random.normal(size=(n, 4))
    labels = np.full(n, -1)
    for c in range(3):
        labels[np.flatnonzero(truth == c)[:12]] = c
    return Pool(examples.astype(np.float32), labels, ("ant", "bee", "cat"), "clouds", hidden_labels=truth)


def estimates(records):
    return [record for record in records if record["kind"] == "shares"]


@pytest.mark.parametrize("algorithm", [ESTIMATED, FixMatch(alignment="given", target_prior="estimated")])
def test_what_training_aims_at_becomes_what_it_estimates(tmp_path, algorithm):
    pool = unequal()
    found = estimates(train(config(algorithm, steps=120), tmp_path / "run", pool))
    assert [record["step"] for record in found] == [120 * i // 16 for i in range(6, 16)]
    assert pool.hidden_labels is not None
    last, truth = found[-1], pool.hidden_labels[pool.labels == -1]
    true = 100 * np.bincount(truth) / len(truth)
    assert np.abs(np.array(last["share"]) - true).sum() < 20
    assert np.sum(last["target"]) == pytest.approx(100)
    assert last["target"][0] < 30
    assert last["target"][2] > 45
    state = checkpoint.load(tmp_path / "run" / checkpoint.CURRENT)[0]
    target = torch.tensor(last["target"]) / 100
    if isinstance(algorithm, CADR):
        torch.testing.assert_close(state["algorithm.log_target"], torch.log(3 * target))
    else:
        torch.testing.assert_close(state["algorithm.target"], target)


def test_until_then_it_is_the_run_with_equal_shares(tmp_path):
    both = {}
    for name, algorithm in (("equal", CADR()), ("estimated", ESTIMATED)):
        list(train(config(algorithm, steps=120, log_every=15), tmp_path / name, unequal()))
        both[name] = {r["step"]: r for r in tiny.metrics(tmp_path / name) if r["kind"] == "train"}
    equal, estimated = both["equal"], both["estimated"]
    assert equal[45]["loss"] == estimated[45]["loss"]
    assert equal[120]["loss"] != estimated[120]["loss"]


def test_continuing_is_going_on(tmp_path):
    list(train(config(), tmp_path / "whole", tiny.pool()))
    going = train(config(), tmp_path / "parts", tiny.pool())
    for record in going:
        if record["kind"] == "shares" and record["step"] > 30:
            break
    going.close()
    list(train(config(), tmp_path / "parts", tiny.pool()))
    tiny.assert_same(tmp_path / "whole", tmp_path / "parts")


def test_no_label_is_missing(tmp_path):
    pool = tiny.pool()
    assert pool.hidden_labels is not None
    whole = dataclasses.replace(pool, labels=pool.hidden_labels)
    assert estimates(train(config(), tmp_path / "run", whole)) == []


def test_a_network_without_a_middle_is_refused(tmp_path):
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            return self.layer(x)

    settings = dataclasses.replace(config(), model=None)
    with pytest.raises(ConfigError, match="target_prior 'estimated' needs intermediate features"):
        list(train(settings, tmp_path / "run", tiny.pool(), Own()))


def test_the_flag(tmp_path, capsys):
    text = config().to_toml()
    assert 'target_prior = "estimated"' in text
    assert Config.from_toml(text).algorithm == ESTIMATED
    run = tmp_path / "run"
    short = ["--protocol", "mcar", "--n", "40", "--model", "mlp", "--steps", "16", "--device", "cpu", "--out", str(run)]
    assert main(["train", "digits", *short, "--target-prior", "estimated"]) == 0
    assert 'target_prior = "estimated"' in (run / "config.toml").read_text()
    assert '"kind": "shares"' in (run / "metrics.jsonl").read_text()
    capsys.readouterr()
    with pytest.raises(SystemExit) as refused:
        main(["train", "digits", *short, "--target-prior", "guessed"])
    assert refused.value.code == 2
    assert "expected a number or one of estimated, got 'guessed'" in capsys.readouterr().err
    assert main(["train", "digits", *short, "--target-prior", "0.5", "estimated"]) == 2
    assert capsys.readouterr().err == "cadr: target_prior must be of type float, got 'estimated'.\n"
