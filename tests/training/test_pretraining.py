"""`--pretrain`: what a run begins with when names spread over features that were learned without labels."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from cadr.algorithms import ReMixMatch
from cadr.data.pool import Pool
from cadr.errors import ConfigError
from cadr.models import MLP
from cadr.training import checkpoint, train
from cadr.training.auxiliary_head import widen
from cadr.training.feed import Inputs
from cadr.training.phases.pretraining import Pretraining, fit, spread
from tests.training import tiny


def config(**changes):
    return dataclasses.replace(tiny.config(**({"pretrain": 30} | changes)), model=MLP((16, 16)))


def clouds(labels_of_each=1, n=200) -> Pool:
    random = np.random.default_rng(1)
    truth = np.arange(n) % 4
    x = 4 * np.eye(4, 6)[truth] + 0.6 * random.normal(size=(n, 6))
    labels = np.full(n, -1)
    for c in range(4):
        labels[np.flatnonzero(truth == c)[:labels_of_each]] = c
    return Pool(x.astype(np.float32), labels, tuple("abcd"), "clouds", hidden_labels=truth)


def test_labels_spread_to_what_lies_around_them():
    pool = clouds()
    assert pool.hidden_labels is not None
    found = spread(torch.tensor(pool.examples), torch.tensor(pool.labels), 4)
    torch.testing.assert_close(found.sum(1), torch.ones(len(found)))
    assert (found.argmax(1).numpy() == pool.hidden_labels).mean() > 0.95


def test_the_last_layer_is_a_logistic_regression_in_which_classes_weigh_the_same():
    random = np.random.default_rng(0)
    truth = random.choice(3, 300, p=[0.7, 0.2, 0.1])
    x = 5.0 + 3.0 * (random.normal(size=(300, 4)) + np.eye(3, 4)[truth])
    head = nn.Linear(4, 3)
    fit(head, torch.from_numpy(x).float(), nn.functional.one_hot(torch.from_numpy(truth), 3).float())
    scaled = (x - x.mean(0)) / x.std(0)
    weights = 1.0 / (3 * np.bincount(truth)[truth])
    theirs = LogisticRegression(C=1 / (2 * 1e-3), max_iter=10_000, tol=1e-8).fit(scaled, truth, weights)
    ours = head(torch.from_numpy(x).float()).softmax(1).detach().numpy()
    np.testing.assert_allclose(ours, theirs.predict_proba(scaled), atol=2e-3)


def test_a_run_begins_with_what_was_found(tmp_path):
    records = list(train(config(), tmp_path / "run", clouds()))
    (said,) = [record for record in records if record["kind"] == "pretraining"]
    assert (said["step"], said["steps"]) == (0, 30)
    assert said["right"] > 90
    assert sum(said["prior"]) == pytest.approx(1.0, abs=1e-4)
    assert "30 steps without labels" in said["message"]
    first = next(record for record in records if record["kind"] == "train")
    without = list(train(config(pretrain=0), tmp_path / "cold", clouds()))
    assert not [record for record in without if record["kind"] == "pretraining"]
    cold = next(record for record in without if record["kind"] == "train")
    assert first["mask"] > cold["mask"] + 20  # it is sure of what it sees from the start


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(tmp_path):
    tiny.finish(config(), tmp_path / "whole")
    for record in train(config(), tmp_path / "broken", pool=tiny.pool()):
        if record["kind"] == "train" and record["step"] >= 25:
            break
    tiny.finish(config(), tmp_path / "broken")
    tiny.assert_same(tmp_path / "whole", tmp_path / "broken")


def test_one_that_is_stopped_before_its_first_step_begins_anew(tmp_path):
    tiny.finish(config(), tmp_path / "whole")
    for record in train(config(), tmp_path / "broken", pool=tiny.pool()):
        if record["kind"] == "pretraining":
            break
    tiny.finish(config(), tmp_path / "broken")
    tiny.assert_same(tmp_path / "whole", tmp_path / "broken")


def test_the_second_head_is_gone_afterwards(tmp_path):
    list(train(config(), tmp_path / "run", tiny.pool()))
    state = checkpoint.load(tmp_path / "run" / checkpoint.CURRENT)[0]
    assert not any("auxiliary" in name for name in state)


def test_what_has_no_last_layer_of_its_own_is_refused(tmp_path):
    sentence = "pretrain fits the last layer anew, a linear one with 3 outputs and no second one beside it"
    conv = nn.Sequential(nn.Unflatten(1, (4, 1)), nn.Conv1d(4, 3, 1), nn.Flatten())
    with pytest.raises(ConfigError, match=sentence):
        list(train(config(), tmp_path / "run", tiny.pool(), conv))
    remixmatch = dataclasses.replace(config(), algorithm=ReMixMatch(lambda_r=0.0))
    two = widen(nn.Sequential(nn.Linear(4, 3)), 3, 2, seed=0)
    with pytest.raises(ConfigError, match=sentence):
        Pretraining(remixmatch, Inputs.of(tiny.pool(), torch.device("cpu")), two)


def test_a_run_that_goes_on_from_another_one_begins_with_its_weights(tmp_path):
    list(train(config(), tmp_path / "first", tiny.pool()))
    later = config(continue_from=str(tmp_path / "first"))
    records = list(train(later, tmp_path / "second", tiny.pool()))
    assert not [record for record in records if record["kind"] == "pretraining"]
