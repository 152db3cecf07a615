"""Risks under missing labels: their algebra, and double robustness by simulation, with its limit."""

from __future__ import annotations

import pytest
import torch

from cadr.estimate import aipw
from tests.estimate import simulation

REPEATS = 200


@pytest.fixture(scope="module")
def overlapping():
    return simulation.repeat(simulation.OVERLAPPING, overlapping=True, repeats=REPEATS)


@pytest.fixture(scope="module")
def determined():
    return simulation.repeat(simulation.DETERMINED, overlapping=False, repeats=REPEATS)


def _assert_covers(seen):
    """Near the nominal 95 % (a binomial share of 200 has a standard error of 1.5 points), and unbiased."""
    assert 0.90 <= seen.coverage <= 0.995
    assert abs(seen.mean - seen.truth) < 3.5 * seen.error


def _assert_misses(seen):
    assert seen.coverage <= 0.05
    assert abs(seen.mean - seen.truth) > max(20 * seen.error, 0.1 * seen.truth)


@pytest.mark.parametrize("imputation", ["nothing", "pseudo-labels", "E[loss | x]"])
def test_right_propensity_covers_the_true_risk_whatever_is_imputed(overlapping, imputation):
    _assert_misses(overlapping["labelled only"])
    _assert_covers(overlapping[f"right propensity, {imputation} imputed"])


def test_estimated_propensity_covers_too(overlapping):
    """Estimating φ_c removes the chance in the labelled counts: never less coverage than with the true φ_c."""
    seen = overlapping["estimated propensity, pseudo-labels imputed"]
    assert abs(seen.mean - seen.truth) < 3.5 * seen.error
    assert seen.coverage >= 0.90


def test_right_losses_cover_it_with_a_wrong_propensity_when_x_determines_the_label(determined):
    _assert_misses(determined["labelled only"])
    _assert_misses(determined["wrong propensity, nothing imputed"])  # the propensity is wrong enough to matter
    _assert_covers(determined["wrong propensity, true losses imputed"])


def test_expected_losses_do_not_when_classes_overlap(overlapping):
    """The caveat: E[loss | x] is the right imputation given x, but missingness depends on y beyond x."""
    _assert_misses(overlapping["wrong propensity, E[loss | x] imputed"])
    _assert_covers(overlapping["right propensity, E[loss | x] imputed"])


def _rows(n=50, seed=0):
    random = torch.Generator().manual_seed(seed)
    observed, imputed, chance = (torch.rand(n, generator=random, dtype=torch.float64) for _ in range(3))
    return observed, imputed, chance < 0.6, 0.2 + 0.8 * torch.rand(n, generator=random, dtype=torch.float64)


def test_aipw_by_hand():
    observed, imputed, missing, propensity = _rows()
    total = 0.0
    for o, i, m, p in zip(observed.tolist(), imputed.tolist(), missing.tolist(), propensity.tolist(), strict=True):
        total += i if m else i + (o - i) / p
    assert aipw.aipw(observed, imputed, missing, propensity).value.item() == pytest.approx(total / 50, rel=1e-12)


def test_nothing_missing_and_certain_is_the_plain_mean():
    observed, imputed, _, _ = _rows()
    none, sure = torch.zeros(50), torch.ones(50)
    for risk in (
        aipw.aipw(observed, imputed, none, sure),
        aipw.ipw(observed, none, sure),
        aipw.imputed(observed, imputed, none),
    ):
        torch.testing.assert_close(risk.value, observed.mean())
        torch.testing.assert_close(risk.standard_error, observed.std() / 50**0.5)


def test_aipw_of_nothing_imputed_is_ipw():
    observed, imputed, missing, propensity = _rows()
    plain = aipw.ipw(observed, missing, propensity)
    assert plain == aipw.aipw(observed, torch.zeros_like(imputed), missing, propensity)
    torch.testing.assert_close(plain.value, (observed / propensity)[~missing].sum() / 50)


def test_all_missing_is_the_imputed_mean():
    observed, imputed, _, propensity = _rows()
    for risk in (
        aipw.aipw(observed, imputed, torch.ones(50), propensity),
        aipw.imputed(observed, imputed, torch.ones(50)),
    ):
        torch.testing.assert_close(risk.value, imputed.mean())


def test_unknown_entries_of_missing_rows_are_never_looked_at():
    observed, imputed, missing, propensity = _rows()
    unknown = torch.full_like(observed, float("nan"))
    hidden_losses = torch.where(missing, unknown, observed).requires_grad_()
    hidden_propensity = torch.where(missing, torch.zeros_like(propensity), propensity)
    imputed.requires_grad_()
    risk = aipw.aipw(hidden_losses, imputed, missing, hidden_propensity)
    torch.testing.assert_close(risk.value, aipw.aipw(observed, imputed, missing, propensity).value)
    risk.value.backward()
    assert hidden_losses.grad is not None
    assert imputed.grad is not None
    torch.testing.assert_close(hidden_losses.grad, torch.where(missing, 0.0, 1 / propensity) / 50)
    torch.testing.assert_close(imputed.grad, torch.where(missing, 1.0, 1 - 1 / propensity) / 50)


def test_standard_error_is_the_spread_over_repeated_samples(overlapping):
    """The mean reported standard error of one sample agrees with the spread of the estimate over samples."""
    seen = overlapping["right propensity, pseudo-labels imputed"]
    spread = seen.error * REPEATS**0.5
    reported = simulation.OVERLAPPING["right propensity, pseudo-labels imputed"](
        simulation.draw(10_000, overlapping=True)
    )
    assert float(reported.standard_error) == pytest.approx(spread, rel=0.3)
