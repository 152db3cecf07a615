"""The paper's equations 12–15 and the textbook estimators, against each other and against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from . import losses, risk
from .marginal import log_marginal
from .softmax import log_softmax


@pytest.mark.parametrize("seed", range(20))
def test_the_papers_three_losses_sum_to_the_doubly_robust_risk(seed):
    """L_CAP + L_CAI + L_supp = mean(imputed + (1 − m)/p · (observed − imputed)) with imputed = masked L_u."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 60))
    L_s, L_u = rng.exponential(size=(2, rows))
    m, confident = (rng.random((2, rows)) < 0.5).astype(float)
    p = rng.choice([-1.0, 1.0], size=rows) * rng.uniform(0.01, 1.0, size=rows)  # s(x, y) may be negative
    terms = risk.paper_terms(L_s, L_u, confident, m, p)
    np.testing.assert_allclose(terms.total, risk.aipw(L_s, L_u * confident, m, p), rtol=1e-11, atol=1e-11)


def test_the_papers_propensity_is_no_probability():
    """P(y|x) = 0.9 with P(y) = 0.1 gives about −0.048; 1/s · log P(y|x) is nevertheless log P(y|x) − log P(y)."""
    s = risk.paper_propensity(np.log([0.9]), np.log([0.1]))
    np.testing.assert_allclose(s, -0.048, atol=1e-3)
    np.testing.assert_allclose(np.log(0.9) / s, np.log(0.9) - np.log(0.1), rtol=1e-12)


def test_the_supplement_is_one_minus_inverse_propensity_in_log_form():
    """(1 − 1/s(x, ŷ)) · L_u(x, ŷ) = −log P(ŷ); the authors' normaliser is all that our supplement adds."""
    rng = np.random.default_rng(1)
    labelled, weak = 3.0 * rng.normal(size=(12, 5)), rng.normal(size=(20, 5))
    prior = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    log_p = log_marginal(weak, prior, "straight_through")
    predicted = losses.pseudo_labels(labelled)
    used = losses.mask(labelled, prior, 0.95, 0.5)
    assert 0 < used.sum() < 12
    log_conditional = log_softmax(labelled)[np.arange(12), predicted]
    s = risk.paper_propensity(log_conditional, log_p[predicted])
    papers = (used * (1.0 - 1.0 / s) * -log_conditional).mean()
    normaliser = np.log((1.0 / prior[predicted]).mean())
    ours = losses.supplement(labelled, weak, prior, prior, 0.95, 0.5, "straight_through")
    np.testing.assert_allclose(ours, papers - used.mean() * normaliser, rtol=1e-12)


def test_both_forms_of_the_class_propensity():
    """100 rows, 20 labelled (16 + 4), true marginals half and half: the two forms give the same answer."""
    counts, expected = np.array([16.0, 4.0]), np.array([16 / 50, 4 / 50])
    inside = risk.class_propensity(counts, np.array([0.5, 0.5]), 100, labelled_in_stream=True)
    np.testing.assert_allclose(inside, expected)
    outside = risk.class_propensity(counts, np.array([34 / 80, 46 / 80]), 80, labelled_in_stream=False)
    np.testing.assert_allclose(outside, expected)


def test_propensities_are_clipped_into_floor_and_one():
    """A class predicted less often than it is labelled would have φ = 1.6; one without labels φ = 0."""
    clipped = risk.class_propensity(
        np.array([16.0, 0.0]), np.array([0.1, 0.9]), 100, labelled_in_stream=True, floor=0.01
    )
    np.testing.assert_array_equal(clipped, [1.0, 0.01])


def test_self_normalised_weights_and_their_effective_sample_size():
    weights = risk.self_normalised(np.array([0.5, 0.25]), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(weights, np.array([2.0, 2.0, 4.0, 4.0]) / 3.0)
    np.testing.assert_allclose(risk.effective_sample_size(weights), 12.0**2 / 40.0)
    assert risk.effective_sample_size(np.ones(7)) == 7.0


def test_risks_by_hand():
    observed, imputed = np.array([1.0, 2.0, 99.0, 99.0]), np.array([0.5, 1.0, 3.0, 4.0])
    missing, propensity = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.5, 0.25, 0.5, 0.25])
    assert risk.ipw(observed, missing, propensity) == (2.0 + 8.0) / 4
    assert risk.hajek(observed, missing, propensity) == (2.0 + 8.0) / (2.0 + 4.0)
    assert risk.imputed_risk(observed, imputed, missing) == (1.0 + 2.0 + 3.0 + 4.0) / 4
    assert risk.aipw(observed, imputed, missing, propensity) == (1.5 + 5.0 + 3.0 + 4.0) / 4
    assert risk.standard_error(np.array([1.0, 3.0])) == 1.0
