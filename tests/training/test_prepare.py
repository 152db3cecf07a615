"""From a configuration to a run that can start: what its seed decides."""

import dataclasses

import numpy as np
import pytest

from cadr.data import make_split, validation
from cadr.data.protocols import Longtail
from cadr.training.prepare import prepare
from cadr.training.run_folder import RunFolder
from tests.training import tiny


def prepared(tmp_path, seed, pool, **changes):
    settings = dataclasses.replace(tiny.config(seed=seed), **changes)
    return prepare(settings, RunFolder(tmp_path / f"{seed}"), pool, None)


def test_the_seed_decides_who_keeps_a_label(tmp_path):
    whole = dataclasses.replace(tiny.pool(), labels=np.arange(90) % 3)
    protocol = Longtail(n_max=9, gamma=3.0)
    made = [prepared(tmp_path, seed, whole, protocol=protocol) for seed in (1, 2)]
    assert [one.split.sha256 for one in made] == [make_split(whole, protocol, seed).sha256 for seed in (1, 2)]
    assert not np.array_equal(made[0].pool.labels, made[1].pool.labels)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_seed_decides_which_labels_are_held_out(tmp_path, seed):
    own = dataclasses.replace(tiny.pool(test=False), hidden_labels=None)
    held = prepared(tmp_path, seed, own).validation
    assert held.tolist() == validation.choose(own, 0.2, seed).tolist()
    assert held.tolist() != validation.choose(own, 0.2, 0).tolist()
