"""A checkpoint: a folder of small files that stands as a whole or not at all, and is read without running code.

The new one is written beside the old one, synchronised to disk, and renamed into place; the one before it is kept.
So at every moment at least one folder holds a complete checkpoint, and a damaged one costs no more than the steps
since the one before.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import re
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cadr.errors import CheckpointError
from cadr.utils import ranks
from cadr.utils.files import sync
from cadr.utils.untrusted import parse_json, read_bytes

CURRENT, PREVIOUS, NEW, REFUSED = "checkpoint", "checkpoint.previous", "checkpoint.new", "checkpoint.refused"
_MANIFEST = "manifest.json"
_PART = 12 * 2**20  # bytes of tensors in a file; with its headers it stays well under 15 MiB
_FORMAT = 1

Checkpoint = tuple[dict[str, Tensor], dict[str, Any]]  # tensors by name, and what JSON can say


class NewerError(CheckpointError):
    """A checkpoint that this version cannot read, and that nothing is wrong with: no older one takes its place."""


def save(out: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write a checkpoint into the run folder; after an error the last good one is still in its place."""
    new = out / NEW
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        files = {}
        for number, part in enumerate(_parts(tensors)):
            content = io.BytesIO()
            torch.save(part, content)
            files[f"part-{number:03}.pt"] = hashlib.sha256(content.getbuffer()).hexdigest()
            _write(new / f"part-{number:03}.pt", content.getbuffer())
        shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
        manifest = {"format": _FORMAT, "files": files, "shapes": shapes, "facts": facts}
        manifest["sha256"] = _digest(manifest)
        _write(new / _MANIFEST, json.dumps(manifest).encode())
        sync(new)
        if (out / CURRENT).exists():
            shutil.rmtree(out / PREVIOUS, ignore_errors=True)
            (out / CURRENT).rename(out / PREVIOUS)
        new.rename(out / CURRENT)
        sync(out)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        before = (out / CURRENT).exists() or (out / PREVIOUS).exists()
        raise CheckpointError(
            f"The checkpoint in {out} could not be written ({error.strerror or error}); "
            f"{'the last good one is intact' if before else 'nothing was saved before'}: "
            "make room and run the same command again."
        ) from error


class Saving:
    """When a run is saved: every so many seconds, when it is stopped and at its end, but every step only once.

    A second checkpoint of the same step would push out the one before, which is kept for when the newest is damaged.
    """

    def __init__(self, out: Path, every: float) -> None:
        self.out, self.every = out, every  # seconds
        self.kept: int | None = None  # the step that the newest checkpoint is of
        self.since = time.perf_counter()

    def due(self) -> bool:
        return ranks.agreed(time.perf_counter() - self.since >= self.every)

    def save(self, step: int, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        if step == self.kept:
            return
        if ranks.number() == 0:
            save(self.out, tensors, facts)
        self.kept, self.since = step, time.perf_counter()


def newest(out: Path) -> tuple[Checkpoint | None, str]:
    """The newest checkpoint that can be read, None if there never was one, and a sentence if a newer was refused."""
    problem = ""
    for folder in (out / CURRENT, out / PREVIOUS):
        if folder.is_dir():
            try:
                return load(folder), problem
            except NewerError:
                raise
            except CheckpointError as error:
                problem = problem or str(error)
    if problem:
        raise CheckpointError(f"{problem} There is no other checkpoint: start a new run in another folder.")
    return None, ""


def recover(out: Path) -> tuple[Checkpoint | None, str]:
    """As `newest`, but for the process that will write the next one: leaves the folder in order."""
    if not (out / CURRENT).is_dir() and _complete(out / NEW):  # the process ended between the two renames
        (out / NEW).rename(out / CURRENT)
    found, problem = newest(out)
    if problem and (out / CURRENT).is_dir():  # or the next save would put the bad one in the place of the good one
        shutil.rmtree(out / REFUSED, ignore_errors=True)
        (out / CURRENT).rename(out / REFUSED)
    if found is not None and not (out / CURRENT).is_dir():  # what was kept for this is the newest now
        (out / PREVIOUS).rename(out / CURRENT)
    return found, problem


def _complete(folder: Path) -> bool:
    try:
        load(folder)
    except CheckpointError:
        return False
    return True


def load(folder: Path) -> Checkpoint:
    """Read and verify one checkpoint folder."""
    try:
        manifest = parse_json(read_bytes(folder / _MANIFEST))
        if manifest["format"] > _FORMAT:
            raise NewerError(f"The checkpoint {folder} was made by a newer cadr; install that version to use it.")
        if manifest.pop("sha256") != _digest(manifest) or manifest["format"] != _FORMAT:
            raise ValueError("its manifest does not fit its hash")
        pieces: dict[str, list[Tensor]] = {}
        for name, digest in manifest["files"].items():
            if not re.fullmatch(r"part-\d{3,}\.pt", name):
                raise ValueError(f"it names the file {name!r}")
            content = read_bytes(folder / name)
            if hashlib.sha256(content).hexdigest() != digest:
                raise ValueError(f"{name} does not fit its hash")
            for key, piece in torch.load(io.BytesIO(content), map_location="cpu", weights_only=True).items():
                pieces.setdefault(key.rpartition("#")[0], []).append(piece)
        tensors = {name: torch.cat(pieces[name]).reshape(shape) for name, shape in manifest["shapes"].items()}
        return tensors, dict(manifest["facts"])
    except NewerError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, EOFError, RecursionError,
            pickle.UnpicklingError) as error:  # fmt: skip
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"The checkpoint {folder} cannot be used ({reason}).") from error


def _parts(tensors: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """The tensors, flattened and cut where needed, packed into dictionaries of limited size."""
    parts: list[dict[str, Tensor]] = [{}]
    room = _PART
    for name, tensor in tensors.items():
        flat = tensor.detach().cpu().reshape(-1)
        for number, piece in enumerate(torch.split(flat, _PART // flat.element_size())):
            size = piece.numel() * piece.element_size() + 1024  # the file's own bookkeeping
            if size > room:
                parts.append({})
                room = _PART
            room -= size
            parts[-1][f"{name}#{number}"] = piece.clone()  # a view would be saved with all the memory it looks into
    return parts


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _write(path: Path, content: bytes | memoryview) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
