"""CTAugment: its operations equal Pillow's, its rates equal the one-by-one rule, its draws follow the rates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cadr.augment import ImageViews, ctaugment
from cadr.augment.ctaugment import BINS, CUTOUT, NAMES, RESCALE, Policy
from cadr.augment.operations import GREY, draw_centres
from cadr.utils import random_numbers
from tests.augment import pillow, samples
from tests.augment.test_rescale import by_pillow


def key(step: int = 0) -> torch.Tensor:
    return random_numbers.key(3, torch.tensor(step), 0)


def amount(name: str, level: float) -> float:
    """The ranges of spec 3.9 in plain Python."""
    if name in ("brightness", "colour", "contrast", "sharpness"):
        return 0.1 + 1.9 * level
    if name in ("shear_x", "shear_y", "translate_x", "translate_y"):
        return (2 * level - 1) * 0.3
    return {"posterise": 1 + int(level * 7.999), "rotate": round((2 * level - 1) * 45)}.get(
        name, int(level * 255.999) if name == "solarise" else level
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("cutout", "rescale")])
def test_operation_equals_pillow_at_any_level(name):
    images = samples.synthetic(32, 32)
    levels = torch.rand(len(images), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    operation = torch.full((len(images),), NAMES.index(name))
    got = ctaugment.carry_out(torch.from_numpy(images), Policy(operation, levels, levels), key())
    for image, result, level in zip(images, got.numpy(), levels.tolist(), strict=True):
        expected = pillow.apply(name, image[None], amount(name, level))[0]
        np.testing.assert_array_equal(result, expected, err_msg=f"{name} at level {level}")


def test_rescale_and_cutout_follow_their_levels():
    images = samples.synthetic(32, 32)
    n = len(images)
    level = torch.linspace(0, 0.999, n, dtype=torch.float64)
    method = level.flip(0)
    got = ctaugment.carry_out(torch.from_numpy(images), Policy(torch.full((n,), RESCALE), level, method), key())
    names = ("lanczos", "bicubic", "bilinear", "box", "hamming", "nearest")
    for image, result, x, how in zip(images, got.numpy(), level.tolist(), method.tolist(), strict=True):
        np.testing.assert_array_equal(result, by_pillow(image, x * 0.25, names[int(how * 5.99)]))
    got = ctaugment.carry_out(torch.from_numpy(images), Policy(torch.full((n,), CUTOUT), level, method), key())
    row, column = draw_centres(key(), n, 32, 32)
    for i in range(n):
        half = (1 + int(level[i].item() * 32 * 0.499)) // 2
        expected = images[i].copy()
        y, x = int(row[i]), int(column[i])
        expected[max(0, y - half) : max(0, y + half), max(0, x - half) : max(0, x + half)] = GREY
        np.testing.assert_array_equal(got[i].numpy(), expected)


def test_rates_move_as_if_images_came_one_by_one():
    n = 1500  # several hits in every bin
    policies = [ctaugment.probe_policy(key(step), n) for step in range(2)]
    proximity = random_numbers.uniform(key(9), n)
    rates = 0.5 + 0.5 * random_numbers.uniform(key(10), *ctaugment.initial_rates().shape)
    expected = rates.double().numpy().copy()
    for i in range(n):
        for policy in policies:
            operation = int(policy.operation[i])
            probed = [] if NAMES[operation] == "identity" else [(operation, float(policy.level[i]))]
            if operation == RESCALE:
                probed.append((len(NAMES), float(policy.method[i])))
            for row, level in probed:
                bins = 6 if row == len(NAMES) else 8 if NAMES[row] == "posterise" else BINS
                where = int(level * bins * 0.999)
                expected[row, where] = 0.99 * expected[row, where] + 0.01 * float(proximity[i])
    got = ctaugment.update_rates(rates, policies, proximity)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    untouched = got.numpy() == rates.numpy()
    assert untouched[NAMES.index("identity")].all()
    assert untouched[NAMES.index("posterise"), 8:].all()
    assert untouched[len(NAMES), 6:].all()
    assert not untouched[NAMES.index("rotate")].any()


def test_levels_come_from_bins_whose_rate_is_near_the_best():
    rates = ctaugment.initial_rates()
    rotate = NAMES.index("rotate")
    rates[rotate] = torch.linspace(0, 1, BINS)  # the best is 1.01 with its offset, so 0.8 of it needs a rate of 0.798
    rates[rotate, 13] = 0.79  # the threshold is on rate + 0.01: 0.80 / 1.01 is below 0.8
    policy = ctaugment.draw_policy(rates, key(), 60_000)
    used = (policy.level[policy.operation == rotate] * BINS).long()
    counts = torch.bincount(used, minlength=BINS).double()
    assert (counts[:14] == 0).all()
    weights = rates[rotate, 14:].double() + 0.01
    np.testing.assert_allclose(counts[14:] / counts.sum(), weights / weights.sum(), atol=0.04)
    bits = (policy.level[policy.operation == NAMES.index("posterise")] * 8).long()
    assert bits.unique().tolist() == list(range(8))
    share = torch.bincount(policy.operation, minlength=len(NAMES)).double() / 60_000
    assert (share - 1 / len(NAMES)).abs().max() < 0.005


def test_no_operations_leave_nothing_to_learn():
    views = ImageViews(strong="ctaugment", operations=0)
    images = torch.from_numpy(samples.synthetic(8, 8))
    assert not views.learns
    assert views.init() == {}
    expected = ImageViews(operations=0).strong_view(images, key(), {})
    assert torch.equal(views.strong_view(images, key(), {}), expected)
