"""Reports on tiny runs, and their words."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cadr.config import Config
from cadr.data.pool import Pool
from cadr.report import write_report
from tests.training import tiny


def config(steps: int = 60) -> Config:
    return tiny.config(steps, checkpoint_seconds=60.0)


def written(runs: Sequence[Path], folder: Path, **options: Any) -> tuple[str, list[str]]:
    chosen: dict[str, Any] = {"pool": tiny.pool(), "device": "cpu"} | options
    problems = write_report(runs, folder / "report.html", **chosen)
    return (folder / "report.html").read_text(), problems


def plain(page: str) -> str:
    """The words of a page."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def own_pool(counts: Sequence[int] = (60, 30, 1), n: int = 300) -> Pool:
    """Three clouds, labelled unequally often, without a test set."""
    generator = np.random.default_rng(1)
    truth = np.arange(n) % 3
    labels = np.full(n, -1)
    for c, count in enumerate(counts):
        labels[np.flatnonzero(truth == c)[:count]] = c
    examples = (generator.normal(size=(n, 4)) + 4 * np.eye(3, 4)[truth]).astype(np.float32)
    return Pool(examples, labels, ("ant", "bee", "cat"), "mine")
