"""A checkpoint stands as a whole or not at all, and reading one runs no code."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch

from cadr.errors import CheckpointError
from cadr.training import checkpoint
from tests.training import tiny


def state(number: int) -> dict[str, torch.Tensor]:
    return {
        "step": torch.tensor(number),
        "weights": torch.arange(12.0).reshape(3, 4).T * number,  # not contiguous
        "counts": torch.full((2, 0), number),
        "mask": torch.tensor([True, False]),
    }


def assert_is(found: checkpoint.Checkpoint, number: int) -> None:
    tensors, facts = found
    for name, value in state(number).items():
        assert tensors[name].equal(value), name
        assert tensors[name].dtype == value.dtype
    assert facts == {"number": number}


def save(out: Path, number: int) -> None:
    checkpoint.save(out, state(number), {"number": number})


def test_round_trip_keeps_the_one_before(tmp_path):
    assert checkpoint.recover(tmp_path) == (None, "")
    for number in (1, 2, 3):
        save(tmp_path, number)
    found, problem = checkpoint.recover(tmp_path)
    assert found is not None
    assert_is(found, 3)
    assert_is(checkpoint.load(tmp_path / checkpoint.PREVIOUS), 2)
    assert problem == ""


def test_files_stay_small_enough_to_carry(tmp_path):
    large = {f"layer{i}": torch.randn(2_000_000 + i) for i in range(3)} | {"huge": torch.randn(5_000_000)}
    large |= {f"small{i}": torch.randn(3) for i in range(500)}
    checkpoint.save(tmp_path, large, {})
    files = list((tmp_path / checkpoint.CURRENT).iterdir())
    assert max(file.stat().st_size for file in files) < 15 * 2**20
    assert len(files) <= 6
    tensors, _ = checkpoint.load(tmp_path / checkpoint.CURRENT)
    assert all(tensors[name].equal(large[name]) for name in large)


class Death(BaseException):
    """The process ends here, as far as the disk is concerned."""


@pytest.mark.parametrize("earlier", [0, 1, 2])
@pytest.mark.parametrize("moment", range(8))
def test_death_at_any_moment_of_writing_leaves_a_whole_checkpoint(tmp_path, monkeypatch, earlier, moment):
    for number in range(1, earlier + 1):
        save(tmp_path, number)
    calls = 0

    def dying(function):
        def wrapped(*arguments, **keywords):
            nonlocal calls
            calls += 1
            if calls > moment:
                raise Death
            return function(*arguments, **keywords)

        return wrapped

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", dying(os.fsync))
        patch.setattr(Path, "rename", dying(Path.rename))
        patch.setattr(shutil, "rmtree", dying(shutil.rmtree))
        try:
            save(tmp_path, earlier + 1)
            complete = True
        except Death:
            complete = False
    found, problem = checkpoint.recover(tmp_path)
    assert problem == ""
    if found is None:
        assert earlier == 0
        assert not complete
    else:
        number = found[1]["number"]
        assert_is(found, number)
        assert number == earlier + 1 if complete else number in (earlier, earlier + 1)
    save(tmp_path, 9)  # and life goes on
    found, _ = checkpoint.recover(tmp_path)
    assert found is not None
    assert_is(found, 9)


@pytest.mark.parametrize("earlier", [0, 1])
def test_death_between_the_two_renames_loses_nothing(tmp_path, earlier):
    for number in range(1, earlier + 2):
        save(tmp_path, number)
    (tmp_path / checkpoint.CURRENT).rename(tmp_path / checkpoint.NEW)
    found, problem = checkpoint.recover(tmp_path)
    assert problem == ""
    assert found is not None
    assert_is(found, earlier + 1)
    assert_is(checkpoint.load(tmp_path / checkpoint.CURRENT), earlier + 1)


def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    save(tmp_path, 1)
    real = checkpoint._write

    def full(path, content):
        real(path, bytes(content)[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, "_write", full)
    with pytest.raises(CheckpointError, match=r"No space left on device.*intact"):
        save(tmp_path, 2)
    monkeypatch.undo()
    assert not (tmp_path / checkpoint.NEW).exists()  # what was half written gives its room back
    found, _ = checkpoint.recover(tmp_path)
    assert found is not None
    assert_is(found, 1)


def test_a_full_disk_during_a_run_loses_nothing(tmp_path, monkeypatch):
    tiny.finish(tiny.config(), tmp_path / "reference")
    real, calls = checkpoint._write, 0

    def full(path, content):
        nonlocal calls
        calls += 1
        if calls > 9:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    monkeypatch.setattr(checkpoint, "_write", full)
    with pytest.raises(CheckpointError, match="make room"):
        tiny.finish(tiny.config(), tmp_path / "run")
    monkeypatch.undo()
    tiny.finish(tiny.config(), tmp_path / "run")
    tiny.assert_same(tmp_path / "reference", tmp_path / "run")


def reseal(folder: Path) -> None:
    """What an attacker can do: make all hashes fit."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.pop("sha256")
    manifest["files"] = {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in manifest["files"]}
    manifest["sha256"] = checkpoint._digest(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


class Attack:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def truncate(folder: Path) -> None:
    part = folder / "part-000.pt"
    part.write_bytes(part.read_bytes()[:100])


def truncate_and_reseal(folder: Path) -> None:
    truncate(folder)
    reseal(folder)


def flip(folder: Path) -> None:
    part = folder / "part-000.pt"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)


def no_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def edited_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"number": 2', '"number": 7'))


def other_file(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {"../../secret.pt": "0"}
    path.write_text(json.dumps(manifest))
    manifest.pop("sha256")
    path.write_text(json.dumps(manifest | {"sha256": checkpoint._digest(manifest)}))


def hostile_pickle(folder: Path) -> None:
    torch.save({"weights#0": Attack(folder.parent / "owned")}, folder / "part-000.pt")
    reseal(folder)


def hostile_plain_pickle(folder: Path) -> None:
    (folder / "part-000.pt").write_bytes(pickle.dumps(Attack(folder.parent / "owned"), protocol=2))
    reseal(folder)


def not_tensors(folder: Path) -> None:
    torch.save(["no", "dictionary"], folder / "part-000.pt")
    reseal(folder)


@pytest.mark.parametrize(
    "damage",
    [truncate, truncate_and_reseal, flip, no_manifest, edited_manifest, other_file, hostile_pickle,
     hostile_plain_pickle, not_tensors],
)  # fmt: skip
def test_a_bad_checkpoint_is_refused_in_one_sentence_and_the_one_before_is_used(tmp_path, damage):
    save(tmp_path, 1)
    save(tmp_path, 2)
    damage(tmp_path / checkpoint.CURRENT)
    found, problem = checkpoint.recover(tmp_path)
    assert found is not None
    assert_is(found, 1)
    assert "cannot be used" in problem
    assert "\n" not in problem
    assert not (tmp_path / "owned").exists()
    # The one before is the newest now, in its place: what goes wrong with the next one cannot cost it.
    assert_is(checkpoint.load(tmp_path / checkpoint.CURRENT), 1)
    assert not (tmp_path / checkpoint.PREVIOUS).exists()
    assert (tmp_path / checkpoint.REFUSED).exists()
    save(tmp_path, 3)
    assert_is(checkpoint.load(tmp_path / checkpoint.PREVIOUS), 1)  # not the bad one


def test_with_no_good_one_left_it_says_so(tmp_path):
    save(tmp_path, 1)
    truncate(tmp_path / checkpoint.CURRENT)
    with pytest.raises(CheckpointError, match="There is no other checkpoint"):
        checkpoint.recover(tmp_path)
