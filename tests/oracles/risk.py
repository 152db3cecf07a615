"""Risks when labels are missing: class propensities, IPW, imputation, AIPW, and the paper's equations 12–15."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .softmax import Array, Indices


def class_propensity(
    labelled_counts: Array,
    marginal: Array,
    rows: float,
    *,
    labelled_in_stream: bool,
    floor: float = 0.0,
) -> Array:
    """φ_c = P(labelled | class c), clipped into [floor, 1].

    Where the stream whose marginal is measured contains the labelled rows, `rows` = N and φ_c = N_c / (N P̂_c);
    where it does not, `rows` = N_u and φ_c = N_c / (N_c + N_u P̂_c).
    """
    expected = rows * marginal if labelled_in_stream else labelled_counts + rows * marginal
    return np.asarray(np.clip(labelled_counts / expected, floor, 1.0), dtype=np.float64)


def self_normalised(propensity: Array, labels: Indices) -> Array:
    """Weights 1/φ of the labelled rows, divided by their mean, so that they average one."""
    weights = 1.0 / propensity[labels]
    return np.asarray(weights / weights.mean(), dtype=np.float64)


def effective_sample_size(weights: Array) -> float:
    """Kish: (Σ w)² / Σ w²."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def standard_error(contributions: Array) -> float:
    return float(contributions.std(ddof=1) / np.sqrt(len(contributions)))


def ipw_rows(observed: Array, missing: Array, propensity: Array) -> Array:
    """(1 − m) / p · observed."""
    rows = np.zeros(len(observed))
    for i in range(len(rows)):
        if not missing[i]:
            rows[i] = observed[i] / propensity[i]
    return rows


def aipw_rows(observed: Array, imputed: Array, missing: Array, propensity: Array) -> Array:
    """imputed + (1 − m) / p · (observed − imputed)."""
    return imputed + ipw_rows(observed - imputed, missing, propensity)


def ipw(observed: Array, missing: Array, propensity: Array) -> float:
    return float(ipw_rows(observed, missing, propensity).mean())


def hajek(observed: Array, missing: Array, propensity: Array) -> float:
    """IPW with self-normalised weights."""
    return ipw(observed, missing, propensity) / ipw(np.ones(len(observed)), missing, propensity)


def imputed_risk(observed: Array, imputed: Array, missing: Array) -> float:
    """The observed loss where the label is there, the imputed one elsewhere."""
    return float(np.where(missing.astype(bool), imputed, observed).mean())


def aipw(observed: Array, imputed: Array, missing: Array, propensity: Array) -> float:
    return float(aipw_rows(observed, imputed, missing, propensity).mean())


@dataclass(frozen=True)
class PaperTerms:
    """Equations 12, 13 and 15 over the same N rows; equation 14 is their sum."""

    cap: float
    cai: float
    supplement: float

    @property
    def total(self) -> float:
        return self.cap + self.cai + self.supplement


def paper_terms(L_s: Array, L_u: Array, confident: Array, m: Array, p: Array) -> PaperTerms:
    """L_s where a label is present, L_u on every row, `confident` the indicator con(q) > τ, m = 1 where missing."""
    cap = cai = supplement = 0.0
    for i in range(len(m)):
        masked = L_u[i] * confident[i]
        cap += (1 - m[i]) * L_s[i] / p[i]
        cai += m[i] * masked + (1 - m[i]) * L_s[i]
        supplement += (1 - m[i] - (1 - m[i]) / p[i]) * masked - (1 - m[i]) * L_s[i]
    return PaperTerms(cap / len(m), cai / len(m), supplement / len(m))


def paper_propensity(log_conditional: Array, log_prior: Array) -> Array:
    """s(x, y) = log P(y|x) / (log P(y|x) − log P(y)): no probability, negative once P(y|x) > P(y)."""
    return log_conditional / (log_conditional - log_prior)
