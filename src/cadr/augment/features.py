"""Views of feature vectors: noise, dropped features, and mixing with another row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cadr.errors import ConfigError
from cadr.utils import random_numbers
from cadr.utils.options import check_numbers, option


@dataclass(frozen=True)
class FeatureViews:
    """Weak: a little noise. Strong: more noise, features dropped to zero, and a share of another row mixed in.

    The amounts are in units of a standardised feature; features of other scales should be standardised first.
    """

    weak_noise: float = option(0.05, "standard deviation of the weak view's noise")
    noise: float = option(0.2, "standard deviation of the strong view's noise")
    dropout: float = option(0.2, "share of features set to zero in the strong view")
    mixing: float = option(0.2, "largest share of another row in the strong view")

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in ("weak_noise", "noise"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be 0 or more, not {getattr(self, name)}; use 0 to turn it off.")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be a share of features in [0, 1), not {self.dropout}; try 0.2.")
        if not 0 <= self.mixing <= 1:
            raise ConfigError(f"mixing must be a share in [0, 1], not {self.mixing}; try 0.2.")

    @property
    def learns(self) -> bool:
        """These views learn nothing."""
        return False

    def init(self, device: torch.device | str = "cpu") -> dict[str, Tensor]:
        """No state."""
        return {}

    def weak(self, features: Tensor, key: Tensor) -> Tensor:
        """float32 (n, d) to float32 (n, d)."""
        return features + self.weak_noise * random_numbers.normal(key, *features.shape)

    def strong_view(self, features: Tensor, key: Tensor, state: dict[str, Tensor]) -> Tensor:
        """float32 (n, d) to float32 (n, d)."""
        n, _ = features.shape
        by_share, by_partner, by_noise, by_dropout = random_numbers.split(key, 4)
        share = self.mixing * random_numbers.uniform(by_share, n, 1)
        partner = random_numbers.integers(by_partner, n, n)
        mixed = features + share * (features.index_select(0, partner) - features)
        noisy = mixed + self.noise * random_numbers.normal(by_noise, *features.shape)
        return noisy * (random_numbers.uniform(by_dropout, *features.shape) >= self.dropout)
