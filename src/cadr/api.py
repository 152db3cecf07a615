"""Everything that the shell can do, from Python: train on whatever there is, ask the run, look at it, and keep it.

run = cadr.train("table.csv", label_column="species")     # a path, a Pool, a DataFrame, or X and y
run.predict(new_rows)                                     # also predict_proba
run.evaluate(); run.report("report.html"); run.export("model")
cadr.diagnose(X, y)
cadr.load("runs/table-cadr-seed1")

Settings go by the names of the flags of `cadr train`, and are chosen as there.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cadr.config import Config, Source, name_of
from cadr.data.pool import MISSING, Pool
from cadr.data.raw import check_not_raw, embed_pool, raw_of
from cadr.data.sources.arrays import as_examples, check_apart, examples_array, frame_features, is_frame, open_frame
from cadr.data.sources.base import Options
from cadr.data.sources.registry import open_blocks
from cadr.diagnosis.result import Diagnosis
from cadr.embedding.registry import Pretrained
from cadr.errors import CadrWarning, ConfigError, DataError
from cadr.inference.evaluation import closing_words, evaluate_run
from cadr.inference.predictor import Predictor
from cadr.scoring import known_labels
from cadr.training import train as train_config
from cadr.training.loggers import follow
from cadr.training.plan import open_source, plan
from cadr.training.result import quoted_of, result
from cadr.training.run_folder import RunFolder
from cadr.training.tracking import check_trackers, tracked
from cadr.utils.text import html_table

ROWS = 8192  # predicted together
_JUDGED = {"test": "the test set", "held_out": "rows held out", "validation": "held-out labels"}
_JUDGED["cross_fitted"] = "the labels, each left out in its turn"


class Run:
    """A trained run: its folder, and the data and network that were given for it."""

    def __init__(
        self,
        path: Path | str,
        pool: Pool | None = None,
        model: nn.Module | None = None,
        *,
        classes: NDArray[Any] | None = None,
        device: str = "auto",
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self.path = Path(path)
        self.model, self.device = model, device
        self._pool, self._diagnosis, self._classes = pool, diagnosis, classes

    @cached_property
    def config(self) -> Config:
        """All settings."""
        config = RunFolder.there(self.path).config()
        if config is None:
            raise ConfigError(f"{self.path} is not a run: it holds no config.toml.")
        return config

    @property
    def result(self) -> dict[str, Any]:
        """What it came to: accuracy, recalls, curve, class distribution; as in result.json."""
        return result(self.path)

    @property
    def records(self) -> list[dict[str, Any]]:
        """What it said while it went on, as in metrics.jsonl."""
        return RunFolder.there(self.path).records()

    @cached_property
    def classes(self) -> NDArray[Any]:
        """What `predict` answers with, in the order of the columns of `predict_proba`."""
        if self._classes is not None:
            return self._classes
        names = self._predictor.class_names
        whole = all(name.isascii() and name.removeprefix("-").isdigit() and str(int(name)) == name for name in names)
        return np.array([int(name) for name in names] if whole else names)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row of X: an array, a DataFrame, or the path of anything to predict on."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(1)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (n, classes), calibrated where labels were held out for it."""
        predictor, wanted = self._predictor, self._predictor.wanted()
        if isinstance(X, str | Path):
            parts = [block.examples for block in open_blocks(str(X), wanted).blocks]
        elif is_frame(X) and wanted.columns is not None:
            parts = [frame_features("X", X, wanted.columns, wanted.features)]
        elif wanted.raw is not None:
            parts = [wanted.embed(raw_of("X", X))]
        else:
            parts = [as_examples("X", examples_array("X", X))]
        found = []
        for part in parts:
            wanted.check("X", part)
            found += [predictor.precise(part[i : i + ROWS]) for i in range(0, len(part), ROWS)]
        return np.asarray(torch.cat(found).double().cpu().numpy())

    def evaluate(self) -> dict[str, Any]:
        """Accuracy, geometric mean, recall and confusion on the test set, or on the held-out labels."""
        return evaluate_run(self.path, self._pool, self.model, self.device)

    def report(self, path: Path | str = "report.html", **options: Any) -> Path:
        """Write a page to look at; `rows` and `to_label` are those of `cadr report`."""
        from cadr.report import write_report

        given: dict[str, Any] = {"pool": self._pool, "model": self.model, "device": self.device}
        given["diagnosis"] = self._diagnosis
        for problem in write_report([self.path], path, **given, **options):
            warnings.warn(problem, CadrWarning, stacklevel=2)
        return Path(path)

    def export(self, path: Path | str | None = None, formats: Sequence[str] = ("safetensors", "torch")) -> list[Path]:
        """Write the model for use elsewhere, with a card that says what it is; to the folder `export` of the run."""
        from cadr.inference.export import export_run

        return export_run(self.path, path or self.path / "export", tuple(formats), self.model)

    def save(self, path: Path | str) -> Run:
        """Copy the run's folder; what was trained without `out=` is gone with its `Run` otherwise."""
        if Path(path).exists():
            raise ConfigError(f"{path} is there already; name a new folder to save the run in")
        shutil.copytree(self.path, path)
        return Run(path, self._pool, self.model, classes=self._classes, device=self.device, diagnosis=self._diagnosis)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """How biased the labels are; None where nothing can be said."""
        if self._diagnosis is None:
            try:
                return diagnose(self._pool or open_source(self.config))
            except DataError:
                return None
        return self._diagnosis

    def summary(self) -> list[str]:
        """The headline, and what to know before believing it."""
        return closing_words(self.path, self.config, self._pool, self._diagnosis, self._predictor)

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor.load(self.path, self.model, self.device)

    def _headline(self) -> str:
        found = self.result
        accuracy = quoted_of(found)
        judged = "not judged" if accuracy is None else f"accuracy {accuracy:.1f} % on {_JUDGED[found['evaluated_on']]}"
        return f"{name_of(self.config.algorithm)} on {found['dataset']}, {found['steps']:,} steps, {judged}"

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}: {self._headline()})"

    def _repr_html_(self) -> str:
        found = self.result
        shown = ["–" if share is None else f"{share:.1f} %" for share in found["recall"] or ()]
        table = zip(self._predictor.class_names, shown, strict=True) if shown else ()
        return html_table(("class", "recall"), [[str(name), share] for name, share in table], self._headline())


def train(
    data: Any,
    y: Any = None,
    *,
    out: Path | str | None = None,
    model: Any = None,
    quiet: bool = False,
    log: Sequence[str] = (),
    **settings: Any,
) -> Run:
    """Train on a path or a benchmark's name, a Pool, a DataFrame with a column of labels, or X and y.

    `settings` are the flags of `cadr train` by their names, such as `algorithm="fixmatch"`, `steps=500`,
    `label_column="species"`. `model` is a network by name, or an `nn.Module` of your own. The run is kept in the folder
    `out`, where the same call continues it after a stop; without, it lasts as long as the `Run` that is returned.
    `log` names where its curves go, too: "tensorboard", "mlflow", "wandb".
    """
    log = (log,) if isinstance(log, str) else log
    check_trackers(log)
    settings = _plain(settings)
    pool, classes = _open(data, y, settings)
    module = model if isinstance(model, nn.Module) else None
    if model is not None and module is None:
        settings["model"] = model
    settings.setdefault("data", str(data) if pool is None else pool.name)
    folder = Path(tempfile.mkdtemp(prefix="cadr-") if out is None else out)
    run = Run(folder, model=module, classes=classes)
    if out is None:
        weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
    planned = plan(settings, pool, module, out=folder)
    run._pool, run._diagnosis, run.device = planned.pool, planned.diagnosis, planned.config.training.device
    records = tracked(train_config(planned.config, folder, planned.pool, module), folder, log)
    if quiet:
        with closing(records):
            for record in records:
                if record["kind"] == "warning":
                    warnings.warn(record["message"], CadrWarning, stacklevel=2)
        return run
    for line in planned.sentences():
        print(line, flush=True)
    follow(records)
    print(*run.summary(), sep="\n", flush=True)
    return run


def load(path: Path | str, data: Any = None, y: Any = None, *, model: Any = None, device: str = "auto") -> Run:
    """A run from its folder. What it was trained on in memory, or a network of your own, has to be given again."""
    run = Run(path, model=model, device=device)
    source = run.config.source
    if data is not None:
        run._pool, run._classes = _open(data, y, {name: getattr(source, name) for name in vars(source)})
    return run


def diagnose(data: Any, y: Any = None, *, seed: int = 0, **settings: Any) -> Diagnosis:
    """How biased the labels are, from the same kinds of data that `train` takes; needs no training.

    `settings` say how a file is read, as the flags of `cadr diagnose` do: `label_column`, `labels`, `image_size`.
    """
    from cadr.diagnosis.diagnose import diagnose as diagnose_pool

    settings = _plain(settings)
    pool, _ = _open(data, y, settings)
    if pool is None:
        pool = open_source(Config.from_dict({"algorithm": "supervised", **settings, "data": str(data)}))
    return diagnose_pool(pool, seed=seed)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """As a run's configuration keeps them: paths are text there."""
    return {name: str(value) if isinstance(value, Path) else value for name, value in settings.items()}


def _open(data: Any, y: Any, settings: dict[str, Any]) -> tuple[Pool | None, NDArray[Any] | None]:
    """Data that are in memory, and the classes as somebody wrote them; None for those that are to be opened."""
    if isinstance(data, tuple) and len(data) == 2 and y is None:
        data, y = data
    if isinstance(data, str | Path | Pool):
        if y is not None:
            raise DataError(f"y belongs to X, but the data are {type(data).__name__}, which have labels; leave y out")
        return (data, None) if isinstance(data, Pool) else (None, None)
    if is_frame(data):
        column = settings.get("label_column", Source.label_column)
        if y is not None:
            known, values = known_labels(y, len(data))
            texts = np.full(len(data), "", dtype=object)
            texts[known] = [str(value) for value in values.tolist()]
            data = data.assign(**{column: texts})
        return open_frame(
            data,
            Options(
                label_column=column,
                ignore_columns=tuple(settings.get("ignore_columns", ())),
                weight_column=settings.get("weight_column"),
                features=_pretrained(settings),
                text_column=settings.get("text_column"),
            ),
        ), None
    if y is None:
        raise DataError(
            f"{type(data).__name__} has no labels; give X and y, a DataFrame with a column of labels, a Pool or a path"
        )
    pretrained, embedded = _pretrained(settings), None
    if pretrained is not None:
        (examples,), embedded = embed_pool(pretrained, raw_of("X", data))
    else:
        check_not_raw("X", data)
        examples = examples_array("X", data)
        check_apart("X", examples)
    known, values = known_labels(y, len(examples))
    classes, found = np.unique(values, return_inverse=True)
    labels = np.full(len(examples), MISSING, dtype=np.int64)
    labels[known] = found
    names = tuple(str(value) for value in classes.tolist())
    return Pool(as_examples("X", examples), labels, names, "X", embedded=embedded), classes


def _pretrained(settings: dict[str, Any]) -> Pretrained | None:
    name = settings.get("features")
    return None if name is None else Pretrained.find(name, settings.get("device", "auto"))
