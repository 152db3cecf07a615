"""Weak and strong views of images, as the training loop asks for them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cadr.augment.ctaugment import Policy, carry_out, draw_policy, initial_rates, probe_policy, update_rates
from cadr.augment.operations import cutout, draw_centres, draw_moves, move
from cadr.augment.randaugment import randaugment
from cadr.errors import ConfigError
from cadr.kernels import augment
from cadr.utils import random_numbers
from cadr.utils.options import check_numbers, option

STRONG = ("randaugment", "ctaugment")
_LARGEST_SHIFT = 4096  # no image has a longer side
_MOST_OPERATIONS = 100  # one after another, and nothing is left of an image long before


@dataclass(frozen=True)
class ImageViews:
    """Weak: flip and shift. Strong: a weak view, then random operations, then cutout."""

    flip: bool = option(True, "mirror half of the images (turn off for digits, letters and the like)")
    shift: int | None = option(None, "largest reflect-padded shift in pixels; by default an eighth of the side")
    strong: str = option("randaugment", f"operations of the strong view: {' or '.join(STRONG)}")
    operations: int = option(2, "operations per strong view")
    cutout: float = option(0.5, "side of the grey square in the strong view, as a share of the image's side")

    def __post_init__(self) -> None:
        check_numbers(self, shift=_LARGEST_SHIFT, operations=_MOST_OPERATIONS)
        if self.strong not in STRONG:
            raise ConfigError(f"strong must be one of {', '.join(STRONG)}, not {self.strong!r}; choose one of these.")
        if self.shift is not None and self.shift < 0:
            raise ConfigError(f"shift must be 0 or more pixels, not {self.shift}; use 0 to turn shifting off.")
        if self.operations < 0:
            raise ConfigError(f"operations must be 0 or more, not {self.operations}; FixMatch uses 2.")
        if not 0 <= self.cutout <= 1:
            raise ConfigError(f"cutout must be a share of the side in [0, 1], not {self.cutout}; FixMatch uses 0.5.")

    @property
    def learns(self) -> bool:
        """Whether `probe` and `update` are to be called at every step."""
        return self.strong == "ctaugment" and self.operations > 0

    def init(self, device: torch.device | str = "cpu") -> dict[str, Tensor]:
        """What the strong view learns, as explicit state."""
        return {"rates": initial_rates(device)} if self.learns else {}

    def weak(self, images: Tensor, key: Tensor) -> Tensor:
        """uint8 (n, h, w, 3) to uint8 (n, h, w, 3)."""
        n, height, width, _ = images.shape
        shift = self._shift(images)
        if augment.applies(images):
            return augment.weak_view(images, key, flip=self.flip, shift=shift)
        return move(images, draw_moves(key, n, height, width, flip=self.flip, shift=shift))

    def _shift(self, images: Tensor) -> int:
        return min(images.shape[1:3]) // 8 if self.shift is None else self.shift

    def strong_view(self, images: Tensor, key: Tensor, state: dict[str, Tensor]) -> Tensor:
        """uint8 (n, h, w, 3) to uint8 (n, h, w, 3)."""
        n, height, width, _ = images.shape
        size = round(self.cutout * min(height, width))
        if augment.applies(images) and not self.learns:
            shift = self._shift(images)
            return augment.strong_view(
                images, key, flip=self.flip, shift=shift, operations=self.operations, cutout=size
            )
        by_weak, by_turns, by_centres = random_numbers.split(key, 3)
        views = self.weak(images, by_weak)
        if self.learns:
            for by_policy, by_cut in random_numbers.split(random_numbers.split(by_turns, self.operations), 2):
                views = carry_out(views, draw_policy(state["rates"], by_policy, n), by_cut)
        else:
            views = randaugment(views, by_turns, self.operations)
        row, column = draw_centres(by_centres, n, height, width)
        return cutout(views, row, column, size)

    def probe(self, images: Tensor, key: Tensor) -> tuple[Tensor, list[Policy]]:
        """Views of labelled images that try any operation at any level, and what was done to each."""
        by_weak, by_turns = random_numbers.split(key, 2)
        views, policies = self.weak(images, by_weak), []
        for by_policy, by_cut in random_numbers.split(random_numbers.split(by_turns, self.operations), 2):
            policies.append(probe_policy(by_policy, len(images)))
            views = carry_out(views, policies[-1], by_cut)
        return views, policies

    def update(
        self, state: dict[str, Tensor], policies: list[Policy], probabilities: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        """Learn from the averaged model's probabilities (n, C) on the probes, whose labels (n,) are known."""
        distance = (probabilities - torch.nn.functional.one_hot(labels, probabilities.shape[1])).abs().sum(1)
        return {"rates": update_rates(state["rates"], policies, 1 - 0.5 * distance)}
