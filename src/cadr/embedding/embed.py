"""Pictures or texts to vectors: what was computed before is looked up, the rest goes through the model in batches."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from cadr.embedding.encoder import Encoder
from cadr.embedding.items import EmbeddingError, Items, Vectors
from cadr.embedding.registry import Pretrained
from cadr.embedding.store import Store
from cadr.errors import CadrError
from cadr.utils.memory import kept_from_the_second
from cadr.utils.progress import TimeLeft

_SAVED = 15.0  # seconds between files of vectors: what a kill costs at most


def keys_of(items: Items) -> list[bytes]:
    """Hashes of what the items hold."""
    with _threads() as threads:
        return list(threads.map(items.key, range(len(items))))


def embed(pretrained: Pretrained, items: Items, keys: list[bytes] | None = None) -> Vectors:
    """float32 (n, d), a row for each item; `keys` are theirs, if somebody knows them already.

    Says on standard error how far it is and how long it will take. Items that cannot be read are named together, when
    all others are done, so that these are not computed again when the data have been mended.
    """
    keys = keys_of(items) if keys is None else keys
    if not keys:
        raise EmbeddingError(f"there are no {items.modality} to embed; give at least one")
    store, vectors, missing = Store(pretrained.kept_as), None, np.ones(len(keys), dtype=bool)
    for rows, found in store.find(keys):
        vectors = np.empty((len(keys), found.shape[1]), dtype=np.float32) if vectors is None else vectors
        vectors[rows] = found
        missing[rows] = False
    if not missing.any():
        assert vectors is not None
        return vectors
    first: dict[bytes, int] = {}  # of items that are alike, only one is computed
    for row in np.flatnonzero(missing).tolist():
        first.setdefault(keys[row], row)
    encoder = pretrained.load(items.modality)
    failures: dict[int, CadrError] = {}
    for part, found in _computed(encoder, items, list(first.values()), keys, store, failures):
        vectors = np.empty((len(keys), found.shape[1]), dtype=np.float32) if vectors is None else vectors
        vectors[part] = found
    alike = [(row, first[keys[row]]) for row in np.flatnonzero(missing).tolist()]
    items.refuse([(row, failures[computed]) for row, computed in alike if computed in failures])
    assert vectors is not None
    for row, computed in alike:
        vectors[row] = vectors[computed]
    return vectors


def _computed(
    encoder: Encoder,
    items: Items,
    rows: list[int],
    keys: Sequence[bytes],
    store: Store,
    failures: dict[int, CadrError],
) -> Iterator[tuple[list[int], Vectors]]:
    """Batches of rows and their vectors, which are kept; rows that cannot be read go to `failures`."""
    waiting: list[tuple[list[int], Vectors]] = []
    saved = time.monotonic()

    def keep() -> None:
        if waiting:
            store.add([keys[row] for part, _ in waiting for row in part], np.concatenate([v for _, v in waiting]))
            waiting.clear()

    try:
        with (
            TimeLeft(len(rows), f"{items.modality} embedded with {encoder.name}") as progress,
            kept_from_the_second(_read(encoder, items, rows, failures)) as batches,
        ):
            for part, ready in batches:
                if part:
                    waiting.append((part, encoder.encode(ready)))
                    yield waiting[-1]
                progress.step(encoder.batch)
                if time.monotonic() - saved > _SAVED:
                    keep()
                    saved = time.monotonic()
    finally:
        keep()
    store.tidy()


def _read(
    encoder: Encoder, items: Items, rows: list[int], failures: dict[int, CadrError]
) -> Iterator[tuple[list[int], list[Any]]]:
    """Batches as they go into the network; while it computes one, the next is read."""

    def ready(row: int) -> Any:
        try:
            return encoder.fit(items.read(row, encoder.detail))
        except CadrError as error:
            return error

    def done(part: list[int], found: list[Any]) -> tuple[list[int], list[Any]]:
        bad = [isinstance(each, CadrError) for each in found]
        failures.update((row, each) for row, each, fails in zip(part, found, bad, strict=True) if fails)
        kept = [(row, each) for row, each, fails in zip(part, found, bad, strict=True) if not fails]
        return [row for row, _ in kept], [each for _, each in kept]

    parts = (rows[at : at + encoder.batch] for at in range(0, len(rows), encoder.batch))
    ahead: deque[tuple[list[int], list[Future[Any]]]] = deque()
    with _threads() as threads:
        try:
            for part in parts:
                ahead.append((part, [threads.submit(ready, row) for row in part]))
                if len(ahead) > 1:
                    part, waited = ahead.popleft()
                    yield done(part, [each.result() for each in waited])
            for part, waited in ahead:
                yield done(part, [each.result() for each in waited])
        finally:
            threads.shutdown(cancel_futures=True)


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1))
