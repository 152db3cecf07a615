"""Predictions in a Ray cluster, as a stream of Ray Data: blocks of rows are read and judged by workers, in order.

A worker that is lost is replaced, and what it had in hand is done again. Every block is what the plain command makes of
it, so the file is the same.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import pickle
import warnings
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from cadr.data.sources.base import Block, Blocks
from cadr.errors import costs_a_sentence
from cadr.inference.predict import Judge, Judged, Rows
from cadr.utils.memory import kept_from_the_second
from cadr.utils.optional_imports import optional_import
from cadr.utils.ray_cluster import LOSSES, cluster, lost

_TOGETHER = 8  # parts handed out at once, where there are many
_MOST = 10_000  # pieces of work
_PASSED_ON = 1 << 23  # bytes, from whoever reads a file that only one can read


class RayEngine:
    """Workers of one CPU each, or of so many GPUs."""

    def __init__(self, gpus: float = 0.0) -> None:
        self.gpus = gpus

    def __call__(self, judge: Judge, rows: Rows, opened: Blocks) -> Generator[Judged, None, None]:
        with cluster(self.gpus) as ray:
            data = optional_import("ray.data", "--engine ray", "ray")
            for answer in self._answers(ray, data, judge, rows, opened):
                found = pickle.loads(answer)
                if isinstance(found, Exception):
                    raise found
                yield found

    def _answers(self, ray: Any, data: Any, judge: Judge, rows: Rows, opened: Blocks) -> Iterator[bytes]:
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        context.target_max_block_size = _PASSED_ON
        there = ray.cluster_resources()
        workers = max(1, int(there["GPU"] / self.gpus if self.gpus else there.get("CPU", 1)))
        reader = _Reader(rows, judge, str(Path.cwd()))
        if opened.sequential:
            given = data.from_items([{"given": b""}], override_num_blocks=1).flat_map(reader.blocks, num_cpus=0)
        else:
            work = _spans(opened.parts, workers)
            given = data.from_items([{"given": pickle.dumps(one)} for one in work], override_num_blocks=len(work))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray 2.64 is to take the last two by other names
            judged = given.map_batches(
                _Worker,
                fn_constructor_args=(reader, self.gpus),
                batch_size=1,
                compute=data.ActorPoolStrategy(min_size=1, max_size=workers),
                num_cpus=1,
                num_gpus=self.gpus or None,
                max_restarts=LOSSES,
                max_task_retries=LOSSES,
            )
        try:
            for row in judged.iter_rows():
                yield row["judged"]
        except ray.exceptions.RayActorError as error:
            raise lost(error) from None


def _spans(parts: int, workers: int) -> list[tuple[int, int]]:
    """All parts, some together: enough for everybody, and not too many to keep in mind."""
    together = max(1, min(_TOGETHER, parts // (4 * workers)), -(-parts // _MOST))
    return [(first, min(first + together, parts)) for first in range(0, parts, together)]


@dataclasses.dataclass
class _Reader:
    """What a worker knows of the rows: paths are as the command was given them, and relative to where it was given."""

    rows: Rows
    judge: Judge
    folder: str

    def open(self) -> Blocks:
        with suppress(OSError):
            os.chdir(self.folder)
        return self.rows.open(self.judge.predictor)

    def blocks(self, _: dict[str, Any]) -> Iterator[dict[str, bytes]]:
        """Of a file that is read from its start."""
        try:
            for block in self.open().blocks:
                yield {"given": pickle.dumps(block)}
        except Exception as error:
            yield {"given": pickle.dumps(_as_answer(error))}


class _Worker:
    def __init__(self, reader: _Reader, gpus: float) -> None:
        torch.set_num_threads(1)
        self.reader, self.judge = reader, reader.judge
        self.opened: Blocks | None = None
        if gpus:
            predictor = self.judge.predictor.on(torch.device("cuda"))
            self.judge = dataclasses.replace(self.judge, predictor=predictor)

    def __call__(self, batch: dict[str, Any]) -> Iterator[dict[str, list[bytes]]]:
        for given in batch["given"]:
            try:
                for judged in self._judged(pickle.loads(given)):
                    yield {"judged": [pickle.dumps(judged)]}
            except Exception as error:
                yield {"judged": [pickle.dumps(_as_answer(error))]}

    def _judged(self, given: Block | tuple[int, int] | Exception) -> Iterator[Judged]:
        if isinstance(given, Exception):
            raise given
        if isinstance(given, Block):
            yield self.judge(given)
            return
        if self.opened is None:
            self.opened = self.reader.open()
        with kept_from_the_second(self.opened.read(*given)) as blocks:
            yield from map(self.judge, blocks)


def _as_answer(error: Exception) -> Exception:
    """What costs the user a sentence goes to the command as it is; anything else is Ray's to report."""
    if not costs_a_sentence(error):
        raise error
    return error
