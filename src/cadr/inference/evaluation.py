"""What a run comes to: on its test set or held-out labels, and on all rows, of which labels are a biased part."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from cadr.config import Config
from cadr.data.pool import Pool, spread, unlabelled
from cadr.diagnosis.contradictions import Outside, classes_outside, outside
from cadr.diagnosis.result import Diagnosis
from cadr.errors import CadrError, DataError
from cadr.inference.accuracy_notes import (
    better_guess,
    caution,
    caution_about_guess,
    examples_judged,
    last_evaluation,
    over_classes,
    weighted_accuracy,
    zero_recall,
)
from cadr.inference.predictor import Predictor, trained
from cadr.training.ensemble_run import SavedEnsemble, trained_model
from cadr.training.feed import Inputs
from cadr.training.network import evaluate, is_half
from cadr.training.plan import is_own, open_source
from cadr.training.prepare import CROSS_FITTED, VALIDATION, Prepared, check_same_data, restore
from cadr.training.record import Record, scores
from cadr.training.result import quoted_of, result
from cadr.training.run_folder import RunFolder
from cadr.training.signature import InputSpec
from cadr.training.target import diagnosed_target
from cadr.utils.memory import kept_from_the_second
from cadr.utils.text import counted

ROWS = 100_000  # unlabelled ones that are predicted, at most
_WHERE = {VALIDATION: " on held-out labels", CROSS_FITTED: " on the labels, each left out in its turn,"}
_AT_ONCE = 1_000  # in memory, of a mapped file
_DRAWS = 4_000  # for an interval
_Z90 = 1.645
_WARNING = "Warning: "


def evaluate_run(
    out: Path | str, pool: Pool | None = None, model: nn.Module | None = None, device: str = "auto"
) -> dict[str, Any]:
    """Accuracy, geometric mean, recall and confusion of the run in folder `out`, finished or not."""
    return judge(out, pool, model, device)[0]


def judge(out: Path | str, pool: Pool | None, model: nn.Module | None, device: str) -> tuple[dict[str, Any], Prepared]:
    """The same, and the run that was judged, with its averaged model."""
    folder = RunFolder.there(out)
    tensors, facts = trained(folder, "evaluate")
    prepared = restore(folder, pool, model, device)
    check_same_data(folder, prepared.pool, facts)
    if prepared.judged_on == CROSS_FITTED:
        fitted = SavedEnsemble.of(tensors, folder.path)
        return _cross_fitted(prepared, fitted), dataclasses.replace(prepared, model=fitted.module)
    inputs = Inputs.of(prepared.pool, prepared.device)
    if inputs.test_examples is None:
        raise DataError(f"{prepared.pool.name} has no test set, so there is nothing to evaluate on.")
    half = is_half(prepared.config.training.precision, prepared.device)
    network = trained_model(prepared.config, prepared.model, tensors, out).to(prepared.device).eval()
    found = {
        "dataset": prepared.pool.name,
        "step": int(tensors["step"]),
        "steps": prepared.config.training.steps,
        "on": prepared.judged_on,
        "examples": len(inputs.test_examples),
        "class_names": list(prepared.pool.class_names),
        **scores(evaluate(network, inputs, half)),
    }
    return found, prepared


def _cross_fitted(prepared: Prepared, fitted: SavedEnsemble) -> dict[str, Any]:
    """Of all labels, each by fits that did not see it; the run has kept them."""
    pool = prepared.pool
    return {
        "dataset": pool.name,
        "step": 100,
        "steps": 100,
        "on": CROSS_FITTED,
        "examples": len(fitted.labelled),
        "class_names": list(pool.class_names),
        **fitted.judged(pool.labels, pool.num_classes),
    }


def closing_words(
    out: Path,
    config: Config,
    pool: Pool | None = None,
    diagnosis: Diagnosis | None = None,
    predictor: Predictor | None = None,
) -> list[str]:
    """What a finished run came to, and what to know before believing it, a sentence or two a line.

    What decides whether to use the model comes first: that it tells less than a guess, or contradicts the diagnosis.

    `pool`, `diagnosis` and `predictor` are given where they are there already.
    """
    found = result(out)
    accuracy, last = quoted_of(found), last_evaluation(out)
    words = [summary(found)]
    if accuracy is not None and last is not None and better_guess(judged := last | {"accuracy": accuracy}):
        words.append(caution_about_guess(judged, InputSpec.read(out).class_names))
    labels, of_labels = UserLabels.of(config, pool, diagnosis), []
    if labels is not None:
        of_labels = labels.words(predictor or Predictor.load(out, device=config.training.device), last)
    decisive = [line for line in of_labels if line.startswith(_WARNING)]
    about = "" if accuracy is None else caution(accuracy, examples_judged(out), found["evaluated_on"])
    rest = [line for line in of_labels if line not in decisive]
    return [*filter(None, [*words, *decisive, about, *rest])]


def summary(result: dict[str, Any]) -> str:
    """The headline of a finished run; of a benchmark with the numbers it could be mistaken for beside it."""
    accuracy = quoted_of(result)
    if accuracy is None:
        return "Trained. There is no test set to evaluate on."
    where = _WHERE.get(result["evaluated_on"], "")
    others = f" (median of the last 10 evaluations; last {result['last']:.2f}, best {result['best']:.2f})"
    others = "" if result["split_sha256"] is None else others
    mean = f"geometric mean over {over_classes(result['recall'])} {result['gm']:.2f} %"
    return f"Accuracy{where} {accuracy:.2f} %{others}, {mean}. {zero_recall(result['recall'])}".rstrip()


@dataclass(frozen=True, eq=False)
class UserLabels:
    """Data whose labels are missing as they are, and what a diagnosis says of them."""

    pool: Pool
    diagnosis: Diagnosis

    @staticmethod
    def of(config: Config, pool: Pool | None = None, diagnosis: Diagnosis | None = None) -> UserLabels | None:
        """None of a benchmark, nor where nothing can be diagnosed: a protocol takes labels from data that have all.

        Nor are there any of data that are gone. `pool` and `diagnosis` are given where they are there already.
        """
        if not is_own(config):
            return None
        if pool is None:
            try:
                pool = open_source(config)
            except (CadrError, OSError):
                return None
        diagnosis = diagnosis or diagnosed_target(pool).diagnosis
        return None if diagnosis is None or diagnosis.weak else UserLabels(pool, diagnosis)

    def weighted(self, evaluation: Record) -> Weighted | None:
        classes = self.diagnosis.classes
        return weighted(evaluation, [c.propensity for c in classes], [c.propensity_interval for c in classes])

    def outside(self, predictor: Predictor) -> list[Outside]:
        """Classes whose predicted shares the diagnosis contradicts."""
        return classes_outside(self.diagnosis, self._shares(predictor))

    def words(self, predictor: Predictor, evaluation: Record | None) -> list[str]:
        """A sentence each on accuracy on all rows and on predicted shares, where there is something to say."""
        found = None if evaluation is None else self.weighted(evaluation)
        said = [] if found is None or evaluation is None else [weighted_in_words(evaluation, found)]
        contradicted = outside(self.diagnosis, self._shares(predictor))
        return [f"{_WARNING}{contradicted}", *said] if contradicted else said

    def _shares(self, predictor: Predictor) -> list[float]:
        """Of the unlabelled rows, by class, as `cadr predict` names them."""
        rows = spread(unlabelled(self.pool), ROWS)
        counts = np.zeros(len(self.diagnosis.classes), dtype=np.int64)
        with kept_from_the_second(range(0, len(rows), _AT_ONCE)) as starts:
            for start in starts:
                found = predictor.probabilities(self.pool.examples[rows[start : start + _AT_ONCE]]).argmax(1)
                counts += np.bincount(found.cpu().numpy(), minlength=len(counts))
        return [float(count) / len(rows) for count in counts]


class Weighted(NamedTuple):
    """Accuracy in percent where a held-out label counts 1/propensity, and its 95 % interval."""

    accuracy: float
    low: float
    high: float


def weighted(
    evaluation: Record,
    propensity: Sequence[float | None],
    intervals: Sequence[tuple[float, float] | None] = (),
) -> Weighted | None:
    """As all rows would be judged, by labels that were held out; None if the run was not judged on such labels.

    A class with a single label has no propensity, and none that is held out.
    """
    if evaluation["on"] not in (VALIDATION, CROSS_FITTED):
        return None
    confusion, known = evaluation["confusion"], [1.0 if phi is None else phi for phi in propensity]
    ends = [pair or (1.0, 1.0) for pair in intervals or [None] * len(known)]
    deviations = [math.log(high / low) / (2 * _Z90) for low, high in ends]
    return Weighted(weighted_accuracy(confusion, known), *weighted_interval(confusion, known, deviations))


def weighted_interval(
    confusion: Sequence[Sequence[int]], propensity: Sequence[float], deviations: Sequence[float]
) -> tuple[float, float]:
    """95 % interval of the weighted accuracy, in percent, over the classes that are judged.

    The recall of every class has the posterior of Jeffreys' prior, Beta(right + ½, wrong + ½), so that two labels of
    two say little; the logarithm of a propensity is normal with the standard deviation in `deviations`.
    """
    counts = np.array(confusion, dtype=np.float64)
    judged = counts.sum(1)
    right, wrong = counts.diagonal(), judged - counts.diagonal()
    draws, random = (_DRAWS, len(judged)), np.random.default_rng(0)
    recall = random.beta(right + 0.5, wrong + 0.5, draws)
    weight = judged / np.array(propensity) * np.exp(np.array(deviations) * random.normal(size=draws))
    low, high = np.quantile((weight * recall).sum(1) / weight.sum(1), (0.025, 0.975))
    return 100 * float(low if right.any() else 0.0), 100 * float(high if wrong.any() else 1.0)


def weighted_in_words(evaluation: Record, found: Weighted, of: str = "") -> str:
    judged = counted(sum(map(sum, evaluation["confusion"])), "label")
    return (
        f"Weighted by 1/propensity, so that {over_classes(evaluation['recall'])} count as in all rows, accuracy"
        f"{of and f' of {of}'} is {found.accuracy:.1f} %. It is evaluated on {judged}; the 95 % interval is "
        f"{found.low:.0f} to {found.high:.0f} %."
    )
