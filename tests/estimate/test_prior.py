"""The moving average of predictions, and the marginal that carries a gradient."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from cadr.errors import ConfigError
from cadr.estimate.prior import log_marginal, uniform_prior, update_prior


def _logits(rows, classes, seed=0, scale=2.0, dtype=torch.float64):
    return scale * torch.randn(rows, classes, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def _prior(classes, seed=1):
    return torch.rand(classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(0)


def _gradient(logits, prior, form, weights):
    logits = logits.clone().requires_grad_()
    (log_marginal(logits, prior, form) * weights).sum().backward()
    return logits.grad


def test_update_is_equation_10():
    prior, logits = _prior(5), _logits(7, 5)
    expected = 0.9 * prior + 0.1 * F.softmax(logits, 1).mean(0)
    torch.testing.assert_close(update_prior(prior, logits, 0.9), expected, rtol=1e-14, atol=0)


def test_momentum_zero_forgets_and_one_never_learns():
    prior, logits = _prior(5), _logits(7, 5)
    assert torch.equal(update_prior(prior, logits, 0.0), F.softmax(logits, 1).mean(0))
    assert torch.equal(update_prior(prior, logits, 1.0), prior)


def test_sum_stays_one_after_a_million_updates():
    """In float32. An update is one interpolation, bit for bit; that interpolation is repeated a million times."""
    batches = [_logits(64, 10, seed, scale=8.0, dtype=torch.float32) + 2 * torch.arange(10) for seed in range(8)]
    marginals = [F.softmax(batch, 1).mean(0) for batch in batches]
    prior = uniform_prior(10)
    with torch.inference_mode():
        for _ in range(125_000):
            for marginal in marginals:
                prior = torch.lerp(prior, marginal, 1.0 - 0.99)
        for batch, marginal in zip(batches * 100, marginals * 100, strict=True):
            updated = update_prior(prior, batch, 0.99)
            assert torch.equal(updated, torch.lerp(prior, marginal, 1.0 - 0.99))
            prior = updated
    assert abs(prior.double().sum().item() - 1) < 1e-6
    assert prior.min() < 0.02 < 0.2 < prior.max()  # the skew is real: the sum is not one because nothing happened


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_averaged_in_float32(dtype):
    logits = _logits(448, 10).to(dtype)
    prior = update_prior(uniform_prior(10), logits)
    assert prior.dtype == torch.float32
    torch.testing.assert_close(prior, update_prior(uniform_prior(10), logits.float()), rtol=0, atol=0)


def test_update_carries_no_gradient():
    logits = _logits(7, 5).requires_grad_()
    assert not update_prior(_prior(5), logits).requires_grad


def test_straight_through_has_the_value_of_the_moving_average_and_the_gradient_of_the_batch():
    prior, logits, weights = _prior(6), _logits(9, 6), torch.randn(6, dtype=torch.float64)
    assert torch.equal(log_marginal(logits, prior), prior.log())
    differentiable = logits.clone().requires_grad_()
    (F.softmax(differentiable, 1).mean(0).log() * weights).sum().backward()  # d log q̄: what dp̃/p̃ is to be
    torch.testing.assert_close(_gradient(logits, prior, "straight_through", weights), differentiable.grad)


def test_no_gradient_flows_into_the_buffer():
    prior = _prior(4).requires_grad_()
    for form in ("straight_through", "pinv"):
        log_marginal(_logits(9, 4).requires_grad_(), prior, form).sum().backward()
    assert prior.grad is None


def test_value_is_exact_at_extreme_logits_in_float32():
    logits, prior = _logits(16, 8, scale=1e4, dtype=torch.float32), _prior(8).float()
    assert torch.equal(log_marginal(logits, prior), prior.log())


@pytest.mark.parametrize("form", ["straight_through", "batch"])
def test_a_class_that_underflows_keeps_its_gradient(form):
    logits = _logits(16, 4, dtype=torch.float32)
    logits[:, 3] -= 500.0  # e^-500 is zero in float32
    assert F.softmax(logits, 1)[:, 3].max() == 0
    weights = torch.tensor([0.0, 0.0, 0.0, 1.0])
    gradient = _gradient(logits, uniform_prior(4), form, weights)
    assert torch.isfinite(gradient).all()
    torch.testing.assert_close(gradient[:, 3].sum(), torch.tensor(1.0))  # raising the class everywhere raises log p̃


def test_a_prior_that_has_underflowed_stays_finite():
    prior = torch.tensor([0.5, 0.5, 0.0])
    value = log_marginal(_logits(8, 3, dtype=torch.float32), prior)
    assert torch.isfinite(value).all()
    assert value[2] < -80


def test_pinv_reproduces_the_buffer_on_a_healthy_batch():
    logits, prior = _logits(448, 10, scale=0.5), uniform_prior(10).double()
    torch.testing.assert_close(log_marginal(logits, prior, "pinv"), prior.log(), rtol=1e-8, atol=0)


def test_pinv_clips_its_weights_and_floors_what_is_left():
    """One row that predicts class 0 alone: weights beyond 0 and 5 are cut, class 1 is left with the floor."""
    logits = torch.tensor([[800.0, 0.0]], dtype=torch.float64)
    value = log_marginal(logits, torch.tensor([9.0, 1.0], dtype=torch.float64), "pinv").exp()
    torch.testing.assert_close(value, torch.tensor([5.0, 1e-12], dtype=torch.float64))
    value = log_marginal(logits, torch.tensor([-9.0, 1.0], dtype=torch.float64), "pinv").exp()
    torch.testing.assert_close(value, torch.full((2,), 1e-12, dtype=torch.float64))


def test_batch_form_ignores_the_buffer():
    logits = _logits(9, 6)
    torch.testing.assert_close(log_marginal(logits, _prior(6), "batch"), F.softmax(logits, 1).mean(0).log())


def test_unknown_form_is_named():
    with pytest.raises(ConfigError, match="'exact'"):
        log_marginal(_logits(3, 3), _prior(3), "exact")  # type: ignore[arg-type]


def test_autocast_does_not_lower_the_precision():
    logits, prior = _logits(64, 10, dtype=torch.float32), uniform_prior(10)
    for form in ("straight_through", "batch", "pinv"):
        plain = log_marginal(logits, prior, form)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixed = log_marginal(logits, prior, form)
        torch.testing.assert_close(mixed, plain, rtol=1e-6, atol=1e-6)


def test_uniform_start():
    assert math.isclose(float(uniform_prior(7).sum()), 1.0, rel_tol=1e-6)
    assert uniform_prior(7).unique().numel() == 1


def test_the_average_is_as_precise_as_what_goes_in():
    assert update_prior(uniform_prior(4), _logits(5, 4)).dtype == torch.float64
    assert update_prior(uniform_prior(4).double(), _logits(5, 4, dtype=torch.float32)).dtype == torch.float64
    assert update_prior(uniform_prior(4).half(), _logits(5, 4, dtype=torch.float16)).dtype == torch.float32
