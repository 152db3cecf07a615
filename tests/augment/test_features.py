"""Views of feature vectors."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from cadr.augment import FeatureViews
from cadr.errors import ConfigError
from cadr.utils import random_numbers


def key(step: int = 0) -> torch.Tensor:
    return random_numbers.key(1, torch.tensor(step), 0)


def test_weak_view_adds_noise_of_the_given_size():
    features = torch.zeros(2000, 20)
    noisy = FeatureViews(weak_noise=0.05).weak(features, key())
    assert noisy.dtype == torch.float32
    assert abs(noisy.std().item() - 0.05) < 0.001
    assert abs(noisy.mean().item()) < 0.001


def test_strong_view_drops_the_given_share_of_features():
    features = torch.full((2000, 20), 5.0)
    seen = FeatureViews(noise=0.0, dropout=0.3, mixing=0.0).strong_view(features, key(), {})
    assert set(seen.unique().tolist()) == {0.0, 5.0}
    assert abs((seen == 0).double().mean().item() - 0.3) < 0.01


def test_strong_view_mixes_in_at_most_the_given_share_of_another_row():
    features = torch.eye(50)
    seen = FeatureViews(noise=0.0, dropout=0.0, mixing=0.4).strong_view(features, key(), {})
    assert torch.allclose(seen.sum(1), torch.ones(50))
    own = seen.diagonal()
    assert own.min() >= 0.6
    assert (own < 0.99).sum() > 30


def test_views_depend_on_the_key_alone_and_learn_nothing():
    views, features = FeatureViews(), torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    assert views.init() == {}
    assert not views.learns
    assert torch.equal(views.strong_view(features, key(), {}), views.strong_view(features, key(), {}))
    assert not torch.equal(views.strong_view(features, key(), {}), views.strong_view(features, key(1), {}))
    compiled = torch.compile(lambda x, k: views.strong_view(x, k, {}), fullgraph=True, backend="eager")
    assert torch.equal(compiled(features, key()), views.strong_view(features, key(), {}))


@pytest.mark.parametrize("wrong", [{"noise": -1.0}, {"weak_noise": -1.0}, {"dropout": 1.0}, {"mixing": 1.5}])
def test_impossible_settings_are_refused_by_name(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        FeatureViews(**wrong)


def test_every_field_has_a_help_text():
    assert all(field.metadata["help"] for field in dataclasses.fields(FeatureViews))
