"""CAP, CAI and CADR (Hu et al., "On Non-Random Missing Labels in Semi-Supervised Learning", ICLR 2022).

The terms of the four methods, summed; their fields and formulas stand in class_aware.py:

    CAP        supervised + propensity + unlabelled, one threshold
    CAI        supervised              + unlabelled, class-aware thresholds
    CAP+CAI    supervised + propensity + unlabelled, class-aware thresholds
    CADR       supervised + propensity + unlabelled, class-aware thresholds + supplement
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cadr.algorithms.base import Facts, State, Terms, check_choice, check_range
from cadr.algorithms.class_aware import ClassAware, ClassAwareImputation, ClassAwarePropensity
from cadr.algorithms.imputation import Predictions, Thresholded
from cadr.estimate.aipw import class_propensity, class_weights
from cadr.functional import Imputed, correction, cross_entropy, impute, predictions, thresholds
from cadr.utils.options import option


@dataclass(frozen=True)
class CAP(ClassAwarePropensity, Thresholded):
    """Class-aware propensity: the labelled rows are corrected for the class marginal (Eq. 7)."""

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.cap(step, self.marginal(step)) | self.unlabelled(step)


@dataclass(frozen=True)
class CAI(ClassAwareImputation):
    """Class-aware imputation: rare classes get lower thresholds (Eq. 11)."""

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step)


@dataclass(frozen=True)
class CAPCAI(ClassAware):
    """Both, added: the paper's "w/o CADR"."""

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.cap(step, self.marginal(step)) | self.unlabelled(step)


@dataclass(frozen=True)
class CADR(ClassAware):
    """Class-aware doubly robust (Eq. 14): both, and the supplement on labelled rows that are predicted confidently."""

    supplement_threshold: Literal["class_aware", "fixed"] = option(
        "class_aware", "The supplement's threshold: CAI's, as in the authors' code, or one for all, as in the paper."
    )
    propensity: Literal["paper", "class"] = option(
        "paper", "The paper's log-ratio, or the valid class propensities P(labelled | class)."
    )
    propensity_floor: float = option(1e-5, "Class propensities are clipped here from below.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("supplement_threshold", self.supplement_threshold, "class_aware", "fixed")
        check_choice("propensity", self.propensity, "paper", "class")
        check_range("propensity_floor", self.propensity_floor, 0.0, 1.0)

    def terms(self, step: Predictions) -> Terms:
        if self.propensity == "class":
            return self.augmented(step)
        marginal = self.marginal(step)
        cap_cai = self.supervised(step) | self.cap(step, marginal) | self.unlabelled(step)
        return cap_cai | self.supplement(step, marginal)

    def supplement(self, step: Predictions, marginal: Tensor) -> Terms:
        """(1 − 1/p) L_u on labelled rows, which in log form is minus CAP's correction at the predicted class."""
        imputed = self.impute_labelled(step)
        return {"supplement": -(imputed.mask * correction(marginal, imputed.labels, self.normaliser)).mean()}

    def impute_labelled(self, step: Predictions) -> Imputed:
        class_aware = self.supplement_threshold == "class_aware"
        limits = step.thresholds if class_aware else thresholds(step.prior, self.threshold, beta=0.0)
        return impute(predictions(step.labelled), limits)

    # propensity="class": the augmented inverse-propensity risk with φ_c = P(labelled | c) in place of s(x, y).

    def init(self, facts: Facts) -> State:
        rows = {"stream_rows": facts.num_unlabelled, "all_rows": facts.num_examples}
        flag = {"labelled_in_stream": facts.labelled_in_stream}
        return super().init(facts) | {name: torch.tensor(float(value)) for name, value in (rows | flag).items()}

    def augmented(self, step: Predictions) -> Terms:
        """Imputed losses of all rows, plus the weighted error of the imputation on the labelled ones.

        Observed and imputed losses of a labelled row come from the same logits. From two views the difference has no
        lower bound: the imputed loss of the other view can be driven to infinity at no cost.
        """
        counts, rows = step.state["labelled_counts"], step.state["stream_rows"]
        propensity = class_propensity(counts, step.prior, rows, step.state["labelled_in_stream"], self.propensity_floor)
        weights = class_weights(propensity, counts)[step.labels]
        labelled = self.impute_labelled(step)
        targets = labelled.labels if self.pseudo_labels == "hard" else predictions(step.labelled)
        imputed = self.lambda_u * labelled.mask * cross_entropy(step.labelled, targets)
        observed = cross_entropy(step.labelled, step.labels)
        in_stream = rows / step.state["all_rows"]  # one where the stream contains the labelled rows
        return {
            "supervised": (weights * observed).mean(),
            "unlabelled": in_stream * self.unlabelled(step)["unlabelled"],
            "supplement": (((1 - in_stream) - weights) * imputed).mean(),
        }
