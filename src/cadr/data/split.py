"""A split says which rows of a data set keep their label. It is a file, with a hash, so that nothing can be redrawn."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cadr.data.benchmarks import BENCHMARKS
from cadr.data.pool import MISSING, Pool
from cadr.data.protocols import Protocol
from cadr.data.shuffle import held_out as held_out_rows
from cadr.errors import DataError
from cadr.utils.files import atomic_write
from cadr.utils.text import reason
from cadr.utils.untrusted import parse_json, read_text

Indices = NDArray[np.int64]


class SplitError(DataError):
    """A split file is damaged or belongs to other data, or the data cannot be split."""


@dataclass(frozen=True, eq=False)
class Split:
    """Who keeps a label, and how that was decided."""

    dataset: str
    protocol: str
    parameters: dict[str, Any]  # of the protocol, and `held_out`: rows kept out of both streams
    seed: int
    counts: tuple[int, ...]  # labels per class
    labelled: Indices
    unlabelled: Indices | Literal["all"]

    @property
    def sha256(self) -> str:
        """The hash of everything else in the file."""
        return hashlib.sha256(json.dumps(self._content(), sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @property
    def held_out(self) -> int:
        return int(self.parameters.get("held_out", 0))

    def _content(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "protocol": self.protocol,
            "parameters": {k: list(v) if isinstance(v, tuple) else v for k, v in self.parameters.items()},
            "seed": self.seed,
            "counts": list(self.counts),
            "labelled": self.labelled.tolist(),
            "unlabelled": self.unlabelled if isinstance(self.unlabelled, str) else self.unlabelled.tolist(),
        }

    def write(self, path: str | Path) -> None:
        """Write the file whole or not at all."""
        with atomic_write(Path(path)) as new:
            new.write_text(json.dumps({**self._content(), "sha256": self.sha256}) + "\n", encoding="utf-8")

    @staticmethod
    def read(path: str | Path) -> Split:
        """Read a file and verify its hash."""
        try:
            content = parse_json(read_text(Path(path)))
        except OSError as error:
            raise SplitError(f"cannot read the split {path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise SplitError(f"{path} is not a split: expected JSON, but {reason(error)}") from error
        split = _from_content(path, content)
        if content["sha256"] != split.sha256:
            raise SplitError(f"{path} has been changed: its sha256 does not fit its contents; make the split again")
        return split


def make_split(pool: Pool, protocol: Protocol, seed: int, held_out: int = 0) -> Split:
    """Draw who keeps a label. `held_out` class-balanced rows are first kept out of both streams (see `apply`)."""
    truth = pool.labels if pool.hidden_labels is None else pool.hidden_labels
    unknown = int((truth == MISSING).sum())
    if unknown and pool.name not in BENCHMARKS:  # STL-10 was published so
        raise SplitError(
            f"{pool.name}: a protocol decides who keeps a label where all labels are known, but {unknown:,} of these "
            f"{len(truth):,} rows have none; leave the protocol out, and learn from the labels there are"
        )
    kept_out = held_out_rows(truth, pool.num_classes, held_out)
    rest = np.setdiff1d(np.arange(len(truth)), kept_out)
    labelled, stream = protocol.select(truth[rest], pool.num_classes, seed)
    if stream is None and held_out == 0:
        unlabelled: Indices | Literal["all"] = "all"
    else:
        unlabelled = rest if stream is None else rest[stream]
    labelled = rest[labelled]
    return Split(
        dataset=pool.name,
        protocol=protocol.name,
        parameters={**protocol.parameters(), "held_out": held_out},
        seed=int(seed),
        counts=tuple(np.bincount(truth[labelled], minlength=pool.num_classes).tolist()),
        labelled=labelled,
        unlabelled=unlabelled,
    )


def apply(pool: Pool, split: Split) -> Pool:
    """The pool as a learner may see it: labels outside the split are missing, and the truth is hidden.

    With rows held out these become the test part, and the real test part is gone: decisions cannot be made on it by
    accident.
    """
    truth = pool.labels if pool.hidden_labels is None else pool.hidden_labels
    if split.dataset != pool.name:
        raise SplitError(f"the split is of {split.dataset!r}, the data are {pool.name!r}; make a split of these data")
    stream = None if isinstance(split.unlabelled, str) else split.unlabelled
    for rows in (split.labelled, stream):
        if rows is not None and rows.max(initial=-1) >= len(truth):
            raise SplitError(
                f"the split names row {rows.max()}, but {pool.name} has {len(truth)}; is it an older split?"
            )
    found = truth[split.labelled]
    if (found < 0).any() or np.bincount(found, minlength=pool.num_classes).tolist() != list(split.counts):
        raise SplitError(f"the labels of {pool.name} do not fit the split's class counts; make a split of these data")
    labels = np.full(len(truth), MISSING, dtype=np.int64)
    labels[split.labelled] = found
    changes: dict[str, Any] = {"labels": labels, "hidden_labels": truth, "stream": stream}
    if split.held_out:
        kept_out = held_out_rows(truth, pool.num_classes, split.held_out)
        seen = split.labelled if stream is None else np.union1d(split.labelled, stream)
        if stream is None or len(np.intersect1d(kept_out, seen)):
            raise SplitError("the split does not keep its held-out rows out of the streams; make it again")
        changes |= {"test_examples": pool.examples[kept_out], "test_labels": truth[kept_out]}
    return dataclasses.replace(pool, **changes)


def _from_content(path: str | Path, content: Any) -> Split:
    expected: dict[str, type] = {
        "dataset": str,
        "protocol": str,
        "parameters": dict,
        "seed": int,
        "counts": list,
        "labelled": list,
        "sha256": str,
    }
    if not isinstance(content, dict):
        raise SplitError(f"{path} is not a split: expected an object, got {type(content).__name__}")
    missing = [k for k in [*expected, "unlabelled"] if k not in content]
    unknown = [k for k in content if k not in expected and k != "unlabelled"]
    if missing or unknown:
        raise SplitError(
            f"{path} is not a split: " + ("lacks " + ", ".join(missing) if missing else f"unknown {unknown[0]!r}")
        )
    for name, kind in expected.items():
        if not isinstance(content[name], kind) or isinstance(content[name], bool):
            raise SplitError(f"{path}: {name} should be a {kind.__name__}, got {type(content[name]).__name__}")
    if type(content["parameters"].get("held_out", 0)) is not int:
        raise SplitError(f"{path}: held_out should be a whole number")
    stream = content["unlabelled"]
    return Split(
        dataset=content["dataset"],
        protocol=content["protocol"],
        parameters=content["parameters"],
        seed=content["seed"],
        counts=tuple(_whole(path, "counts", content["counts"]).tolist()),
        labelled=_rows(path, "labelled", content["labelled"]),
        unlabelled="all" if stream == "all" else _rows(path, "unlabelled", stream),
    )


def _whole(path: str | Path, name: str, values: Any) -> Indices:
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 1 << 62 for v in values):
        raise SplitError(f"{path}: {name} should be a list of whole numbers")
    return np.array(values, dtype=np.int64)


def _rows(path: str | Path, name: str, values: Any) -> Indices:
    rows = _whole(path, name, values)
    if len(rows) == 0 or (np.diff(rows) <= 0).any():
        raise SplitError(f"{path}: {name} should be rising row numbers, each once, and at least one")
    return rows
