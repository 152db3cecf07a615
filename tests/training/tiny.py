"""A run that takes a tenth of a second: three clouds of points, a small network, sixty steps."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from cadr.algorithms import CADR
from cadr.config import Config, Training
from cadr.data.pool import Pool
from cadr.models import MLP
from cadr.optim import SGD
from cadr.training import checkpoint, train


def pool(n: int = 90, test: bool = True) -> Pool:
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(3, 4)) * 2
    truth = np.arange(n) % 3
    examples = (centres[truth] + generator.normal(size=(n, 4))).astype(np.float32)
    labels = np.where(np.arange(n) < 18, truth, -1)
    part = slice(n // 2, None)
    return Pool(
        examples,
        labels,
        ("ant", "bee", "cat"),
        "clouds",
        test_examples=examples[part] if test else None,
        test_labels=truth[part] if test else None,
        hidden_labels=truth,
    )


def config(steps: int = 60, **changes: Any) -> Config:
    fixed: dict[str, Any] = {
        "batch": 8,
        "ratio": 2,
        "evaluations": 6,
        "log_every": 5,
        "checkpoint_seconds": 0.0,
        "device": "cpu",
    }
    training = Training(**({"steps": steps, "seed": 3, **fixed} | changes))
    return Config("clouds", CADR(), model=MLP((16,)), optimiser=SGD(lr=0.1, ema=0.9), training=training)


def finish(settings: Config, out: Path, **arguments: Any) -> dict[str, Any]:
    """Train to the end; the last record."""
    *_, last = train(settings, out, **({"pool": pool()} | arguments))
    return last


def tensors(out: Path) -> dict[str, Tensor]:
    """The last checkpoint's."""
    return checkpoint.load(out / checkpoint.CURRENT)[0]


def metrics(out: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without what depends on the clock."""
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in record.items() if k != "timing"} for record in records]


def result(out: Path) -> dict[str, Any]:
    """result.json without what depends on the clock."""
    content = json.loads((out / "result.json").read_text())
    return {k: v for k, v in content.items() if k not in ("seconds", "ms_per_step", "peak_memory_gib", "commit")}


def assert_same(first: Path, second: Path) -> None:
    """Bit for bit."""
    ours, theirs = tensors(first), tensors(second)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype, name
        assert ours[name].equal(theirs[name]), name
    assert metrics(first) == metrics(second)
    assert result(first) == result(second)


def replace(settings: Config, **training: Any) -> Config:
    return dataclasses.replace(settings, training=dataclasses.replace(settings.training, **training))
