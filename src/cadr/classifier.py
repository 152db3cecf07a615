"""The scikit-learn way in: `CADRClassifier().fit(X, y)` where some labels are missing, not at random.

from cadr import CADRClassifier

model = CADRClassifier().fit(X, y)      # y is −1 where nobody has labelled the row
model.predict_proba(X_new)              # and model.class_prior_, model.propensity_ say how biased the labels were
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from cadr.data.pool import MISSING, Pool
from cadr.data.raw import Embedded, check_not_raw, embed_pool, raw_of
from cadr.data.replicates import merged
from cadr.data.sources.arrays import as_examples, columns_of, frame_embedded, is_frame, merging
from cadr.diagnosis.contradictions import outside
from cadr.embedding.registry import Pretrained
from cadr.errors import CadrWarning, ConfigError, DataError
from cadr.inference.around_estimator import AroundEstimator
from cadr.inference.population import ESTIMATED, estimated_shift, shift_to
from cadr.inference.predictor import Predictor
from cadr.scoring import known_labels
from cadr.training import Record, train
from cadr.training.plan import ON_FEATURES, Plan, plan

_ROWS = 8192  # predicted together
_UNCHECKED = (
    "A linear classifier hardly tells the classes apart, so that nothing vouches for target_prior_, class_prior_ and "
    "propensity_; give settings={'target_prior': ...} if you know the classes' shares, or better features."
)
_HISTORY = ("train", "evaluation", "warning")  # kinds of records
_ASIDE = {"kind", "steps", "timing"}  # of a log record: what is no part of the history


class CADRClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for labels that are missing not at random (Hu et al., ICLR 2022), and every other method here.

    Rows are features (n, d), which are standardised, or uint8 images (n, h, w, c); columns of a DataFrame may hold
    words, dates and gaps, too. A label is missing where `y` is −1, or None or NaN, and among text where it is blank;
    only −1 and blanks are spread evenly over scikit-learn's folds. Columns of pandas keep their kind: whole numbers
    with gaps (Int64, categories) are whole numbers in `classes_`. What is left None is chosen by the data. Scorers
    other than `score` need `cadr.on_labelled`. A fitted model has `report`, `export` and `save`.

    With `features`, the name of a pretrained model as for `cadr train --features`, rows are pictures (paths, images of
    Pillow, uint8 arrays of any size) or texts, or a DataFrame with columns of texts among others.

    Features are learned in seconds by an ensemble of simple learners with class-aware imputation, stacked by
    cross-fitting; any other `algorithm` is a name away, such as "logistic", "cap_cai" or "cadr". With an `estimator`,
    any classifier of scikit-learn's that has predict_proba, the imputation and the correction for class shares go
    around that one. Images, and whatever is given a network's setting, are learned by a network.

    Parameters: `algorithm` is a method's name, `model` a network's; `steps`, `batch` (labelled rows a step), `ratio`
    (unlabelled rows for each) and `lr` are those of training a network; `validation` is the share of the labels that
    is held out to calibrate a network's probabilities on, none by default; `settings` are further settings by the name
    of their flag in `cadr train`, for example {"beta": 0.3, "flip": False, "hidden": (256,)}.

    The classes' shares are estimated; give settings={"target_prior": (0.9, 0.1)} if you know them, in the order of
    `classes_`. Of networks, CAP and CADR are told them as `cadr diagnose` estimates them, where these cannot be equal.

    Learned: `classes_`; `class_prior_`, the class distribution of all rows as the model predicts it; `propensity_`, the
    share of each class that has a label, from the same predictions; `target_prior_`, the shares that training was told,
    None where it was told none; `diagnosis_`, what these shares were chosen by, None where somebody else chose or
    nothing could be said; `history_`, what training said; `calibration_`; `n_features_in_`.

    A CadrWarning says where the model is not to be relied on: a class is hardly ever predicted, predicted shares
    contradict the diagnosis or nothing can be diagnosed, or more than the class decides who is labelled.
    """

    def __init__(
        self,
        algorithm: str | None = None,
        *,
        estimator: Any = None,
        model: str | None = None,
        steps: int | None = None,
        batch: int | None = None,
        ratio: int | None = None,
        lr: float | None = None,
        validation: float = 0.0,
        features: str | None = None,
        settings: dict[str, Any] | None = None,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.estimator = estimator
        self.model = model
        self.steps = steps
        self.batch = batch
        self.ratio = ratio
        self.lr = lr
        self.validation = validation
        self.features = features
        self.settings = settings
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows with and without labels.

        A row with the weight k in `sample_weight` (n,) counts like k rows, in all that is learned: the same rows,
        weighted or repeated, give the same model.
        """
        if y is None:
            raise ValueError("This CADRClassifier estimator requires y to be passed, but the target y is None.")
        X, embedded = self._examples(X, reset=True)
        known, values = known_labels(y, len(X))
        weights = _checked_weights(sample_weight, X)
        if weights is not None and (weights == 0).any():
            kept = weights > 0
            if embedded is not None:
                raise DataError("sample_weight must be above 0 for pictures and texts; leave out rows of weight 0")
            X, values, known, weights = X[kept], values[kept[known]], known[kept], weights[kept]
        check_classification_targets(values)
        labels = np.full(len(X), MISSING, dtype=np.int64)
        self.classes_, labels[known] = np.unique(values, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"labels of at least two classes are needed, got one class: {self.classes_.tolist()[0]!r} "
                "(−1 stands for a missing label)"
            )
        names = tuple(str(name) for name in self.classes_)
        pool = self._pool(X, labels, embedded, weights)
        planned = self._plan(pool)
        records = self._fit(planned, pool)
        self.calibration_ = self._predictor.calibration
        self.history_ = [
            {key: value for key, value in record.items() if key not in _ASIDE}
            for record in records
            if record["kind"] in _HISTORY
        ]
        aimed = planned.config.algorithm.aimed_at(len(names))
        self.target_prior_ = None if aimed is None else aimed.double().numpy()
        self.diagnosis_ = planned.diagnosis
        each = np.ones(len(X)) if weights is None else weights
        counts = np.bincount(labels[known], each[known], minlength=len(names))
        unlabelled = each[~known] @ self._probabilities(X[~known]) if not known.all() else np.zeros(len(names))
        self.class_prior_ = (counts + unlabelled) / each.sum()
        self.propensity_ = counts / (counts + unlabelled)
        for doubt in self._doubts(planned, unlabelled / max(1, each[~known].sum())):
            warnings.warn(doubt, CadrWarning, stacklevel=2)
        return self

    def _fit(self, planned: Plan, pool: Pool) -> list[Record]:
        """Train the run that is planned, or go around the estimator; returns what was said meanwhile."""
        self._predictor: Any  # a Predictor, or what is around an estimator
        self._run: dict[str, bytes] = {}
        if self.estimator is not None:
            aimed = planned.config.algorithm.aimed_at(pool.num_classes)
            shares = None if aimed is None else aimed.numpy()
            self._predictor = AroundEstimator(self.estimator, pool, planned.config.training.seed, shares)
            self._predictor.pretrained = self._pretrained(reset=True)
            return [self._predictor.record()]
        with tempfile.TemporaryDirectory(prefix="cadr-") as out:
            records = list(train(planned.config, out, pool))
            self._predictor = Predictor.load(out, device=self.device)
            self._run = {
                path.relative_to(out).as_posix(): path.read_bytes() for path in Path(out).rglob("*") if path.is_file()
            }
        return records

    def predict_proba(self, X: Any, *, prior: Any = None) -> NDArray[np.float64]:
        """Probabilities, (n, classes); calibrated if labels were held out for it.

        `prior` are the classes' shares among these rows, if they are not those of the training rows (`class_prior_`):
        numbers in the order of `classes_`, a mapping from some or all classes, or "estimated" from the rows themselves.
        """
        check_is_fitted(self)
        probabilities = self._probabilities(self._examples(X, reset=False)[0])
        if prior is None:
            return probabilities
        if isinstance(prior, str) and prior == ESTIMATED:
            return estimated_shift([probabilities], self.class_prior_)(probabilities)
        classes = self.classes_.tolist()
        if isinstance(prior, str) or not (isinstance(prior, Mapping) or len(prior) == len(classes)):
            raise ConfigError(
                f"prior: expected a share of each of {classes}, a mapping, or {ESTIMATED!r}, got {prior!r}"
            )
        given = prior if isinstance(prior, Mapping) else dict(zip(classes, map(float, prior), strict=True))
        return shift_to(given, self.class_prior_, classes)(probabilities)

    def predict(self, X: Any, *, prior: Any = None) -> NDArray[Any]:
        """The most probable classes, (n,); `prior` as for `predict_proba`."""
        best = self.predict_proba(X, prior=prior).argmax(1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the rows that have a label."""
        known, values = known_labels(y, len(X))
        predicted = self.predict(X)[known]
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(values, predicted, sample_weight=weights))

    def save(self, folder: Path | str) -> Path:
        """Write the run to a new folder, for `cadr predict` and `cadr export`."""
        check_is_fitted(self)
        if isinstance(self._predictor, AroundEstimator):
            raise self._predictor.not_kept()
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder} holds something already; name a new folder")
        for name, content in self._run.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder

    def export(self, folder: Path | str, formats: Sequence[str] = ("safetensors", "torch")) -> list[Path]:
        """Write the model for use elsewhere, with a model card, as `cadr export` does; returns the files."""
        from cadr.inference.export import export_run

        with tempfile.TemporaryDirectory(prefix="cadr-") as out:
            return export_run(self.save(Path(out) / "run"), folder, tuple(formats))

    def report(self, path: Path | str, X: Any, y: Any, sample_weight: Any = None) -> list[str]:
        """Write a page about the model, as `cadr report` does, from the data and weights it was fitted to.

        What had to be left out comes back in words.
        """
        from cadr.report import write_report

        check_is_fitted(self)
        known, values = known_labels(y, len(X))
        if not np.isin(values, self.classes_).all():
            raise DataError("y holds labels that the model was not fitted to; give the y that it was")
        labels = np.full(len(known), MISSING, dtype=np.int64)
        labels[known] = np.searchsorted(self.classes_, values)
        X, embedded = self._examples(X, reset=False)
        weights = _checked_weights(sample_weight, X)
        counts = np.ones(len(X), dtype=np.bool_) if weights is None else weights > 0
        weights = None if weights is None else weights[counts]
        pool = self._pool(X[counts], labels[counts], embedded, weights)
        with tempfile.TemporaryDirectory(prefix="cadr-") as out:
            return write_report([self.save(Path(out) / "model")], path, pool=pool, device=self.device)

    def _pool(
        self,
        examples: NDArray[Any],
        labels: NDArray[np.int64],
        embedded: Embedded | None,
        weights: NDArray[np.float64] | None,
    ) -> Pool:
        names = tuple(str(name) for name in self.classes_)
        pool = Pool(examples, labels, names, "X", embedded=embedded, weights=weights)
        if self._columns is not None:
            features = tuple(feature for column in self._columns for feature in column.features)
            pool = replace(pool, feature_names=features, columns=self._columns)
        return pool if embedded is not None else merged(pool)

    def _doubts(self, planned: Plan, shares: NDArray[np.float64]) -> Iterator[str]:
        """Reasons not to rely on the model, whose predicted `shares` are those of the rows without a label."""
        if planned.target is not None and planned.target.warning:
            yield f"{planned.target.warning} See diagnosis_."
        yield from (record["message"] for record in self.history_ if "message" in record)
        if self.diagnosis_ is None:
            return
        if self.diagnosis_.weak:
            yield _UNCHECKED
        if contradiction := outside(self.diagnosis_, shares.tolist()):
            yield contradiction

    def _plan(self, pool: Pool) -> Plan:
        """The run: with no folder to look into, ten evaluations and the last checkpoint are enough."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        named = {name: getattr(self, name) for name in ("model", "steps", "batch", "ratio", "lr", "features")}
        settings = {
            "evaluations": 10,
            "checkpoint_seconds": 1e9,
            "seed": seed,
            **{name: value for name, value in named.items() if value is not None},
            **(self.settings or {}),
            **self._method(),
            "data": pool.name,
            "validation": self.validation,
            "device": self.device,
        }
        return plan(settings, pool, complete_labels=True)

    def _method(self) -> dict[str, str]:
        """The algorithm, unless it is left to the data. An estimator takes the place of the ensemble's members."""
        if self.estimator is None:
            return {} if self.algorithm is None else {"algorithm": self.algorithm}
        if self.algorithm not in (None, ON_FEATURES):
            raise ConfigError(f"give an estimator or algorithm={self.algorithm!r}, not both")
        return {"algorithm": ON_FEATURES}

    def _examples(self, X: Any, reset: bool) -> tuple[NDArray[Any], Embedded | None]:
        """float32 (n, d) or uint8 (n, h, w, 3), checked as scikit-learn checks, and how texts or pictures became so."""
        pretrained = self._pretrained(reset)
        if reset:
            self._offset: NDArray[np.float64] | None = None
            text_column = (self.settings or {}).get("text_column")
            self._columns = columns_of("X", X, pretrained, text_column) if is_frame(X) else None
            if pretrained is not None and is_frame(X) and not any(c.texts for c in self._columns or ()):
                raise DataError(
                    f"features={self.features!r} is for pictures and texts, and X has neither; leave it out"
                )
        if self._columns is not None:
            if not is_frame(X):
                raise DataError("X should be a DataFrame with the columns that the model was fitted to")
            validate_data(self, X, reset=reset, skip_check_array=True)
            return frame_embedded("X", X, self._columns, pretrained)
        if pretrained is not None:
            (vectors,), embedded = embed_pool(pretrained, raw_of("X", X))
            if reset:
                self.n_features_in_ = vectors.shape[1]
            return vectors, embedded
        return self._checked(X, reset), None

    def _pretrained(self, reset: bool) -> Pretrained | None:
        """What turns pictures and texts into vectors."""
        if self.features is None:
            return None
        return Pretrained.find(self.features, self.device) if reset else self._predictor.pretrained

    def _checked(self, X: Any, reset: bool) -> NDArray[Any]:
        least = 2 if reset else 1
        check_not_raw("X", X)
        if getattr(X, "ndim", 2) == 4:
            X = check_array(X, dtype=None, allow_nd=True, ensure_min_samples=least)
            if reset:
                self.n_features_in_ = int(np.prod(X.shape[1:]))
        else:
            X = _numeric(validate_data(self, X, reset=reset, dtype=None, ensure_min_samples=least))
            seen = merging(X) if reset else None
            if seen is not None:  # close numbers far from 0 are counted from their middle: features have 32 bits
                self._offset = np.where(seen.merges, (seen.low + seen.high) / 2, 0.0)
            if self._offset is not None:
                X = X - self._offset
        examples = as_examples("X", X)
        if not reset:
            self._predictor.wanted().check("X", examples)
        return examples

    def _probabilities(self, examples: NDArray[Any]) -> NDArray[np.float64]:
        parts = [self._predictor.precise(examples[i : i + _ROWS]) for i in range(0, len(examples), _ROWS)]
        return np.asarray(torch.cat(parts).double().cpu().numpy())


def _checked_weights(sample_weight: Any, X: NDArray[Any]) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    checked = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(checked, dtype=np.float64)


def _numeric(X: NDArray[Any]) -> NDArray[Any]:
    if X.dtype.kind == "c":
        raise DataError("Complex data not supported: X must be real numbers")
    if X.dtype.kind not in "fiub":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"X must be numbers, as OneHotEncoder makes of words: {error}") from None
    return X
