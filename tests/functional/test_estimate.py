"""Propensities and risks of `cadr.estimate` equal the oracles."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cadr import functional
from cadr.estimate import aipw
from cadr.estimate import aipw as ours
from tests.functional.problems import MODEST, close, prior, tensor
from tests.oracles import risk
from tests.oracles.softmax import Array


def draws(seed: int, rows: int) -> tuple[Array, Array, Array, Array]:
    """Observed and imputed losses, missing flags (both kinds present), propensities."""
    rng = np.random.default_rng(seed)
    observed, imputed = rng.exponential(size=rows), rng.exponential(size=rows)
    missing = rng.integers(2, size=rows).astype(np.float64)
    missing[:2] = 0.0, 1.0
    return observed, imputed, missing, rng.uniform(0.01, 1.0, size=rows)


@pytest.mark.parametrize("inside", [True, False])
@MODEST
@given(classes=st.integers(2, 200), seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["skewed", "uniform", "tiny"]))
def test_class_propensity_and_weights(inside: bool, classes: int, seed: int, kind: str):
    """Some classes have no label (φ at its floor), some more labels than predicted rows (φ at one)."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 60, size=classes).astype(np.float64)
    counts[0] += 1.0
    marginal, rows, floor = prior(kind, classes, rng), float(rng.integers(100, 50_000)), 1e-3
    expected = risk.class_propensity(counts, marginal, rows, labelled_in_stream=inside, floor=floor)
    found = ours.class_propensity(
        tensor(counts),
        tensor(marginal),
        torch.tensor(rows, dtype=torch.float64),
        torch.tensor(float(inside), dtype=torch.float64),
        floor,
    )
    close(found, expected, rtol=1e-12, atol=0.0)
    labels = np.repeat(np.arange(classes), counts.astype(int))
    weights = ours.class_weights(found, tensor(counts))[torch.tensor(labels)]
    expected_weights = risk.self_normalised(expected, labels)
    close(weights, expected_weights, rtol=1e-11)
    close(ours.effective_sample_size(weights), risk.effective_sample_size(expected_weights), rtol=1e-11)


@MODEST
@given(rows=st.integers(2, 300), seed=st.integers(0, 2**32 - 1))
def test_risks_and_their_standard_errors(rows: int, seed: int):
    observed, imputed, missing, propensity = draws(seed, rows)
    o, i, m, p = (tensor(x) for x in (observed, imputed, missing, propensity))
    pairs = [
        (aipw.ipw(o, m, p), risk.ipw_rows(observed, missing, propensity)),
        (aipw.imputed(o, i, m), np.where(missing == 1.0, imputed, observed)),
        (aipw.aipw(o, i, m, p), risk.aipw_rows(observed, imputed, missing, propensity)),
    ]
    for found, contributions in pairs:
        close(found.value, contributions.mean(), rtol=1e-11)
        close(found.standard_error, risk.standard_error(contributions), rtol=1e-9)
    close(aipw.ipw(o, m, p).value, risk.ipw(observed, missing, propensity))
    close(aipw.imputed(o, i, m).value, risk.imputed_risk(observed, imputed, missing))
    close(functional.aipw(o, i, m, p), risk.aipw(observed, imputed, missing, propensity))


def test_what_is_missing_may_hold_anything():
    """An unknown loss is NaN in many a table, and its propensity zero: neither may reach the risk or its gradient."""
    observed, imputed, missing, propensity = draws(0, 40)
    gone = missing == 1.0
    expected = risk.aipw(observed, imputed, missing, propensity)
    holes = torch.tensor(np.where(gone, np.nan, observed), requires_grad=True)
    i, m, p = torch.tensor(imputed, requires_grad=True), tensor(missing), tensor(np.where(gone, 0.0, propensity))
    value = functional.aipw(holes, i, m, p)
    close(value, expected)
    close(aipw.ipw(holes, m, p).value, risk.ipw(observed, missing, propensity))
    close(aipw.imputed(holes, i, m).value, risk.imputed_risk(observed, imputed, missing))
    value.backward()
    assert holes.grad is not None
    assert i.grad is not None
    close(holes.grad, np.where(gone, 0.0, 1.0 / propensity) / 40)
    close(i.grad, (1.0 - np.where(gone, 0.0, 1.0 / propensity)) / 40)
