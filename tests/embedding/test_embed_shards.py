"""Vectors made in parts, put together again."""

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data import embedded_file


def embed(*words):
    return main(["embed", *map(str, words)])


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded_file, "TOGETHER", 32)
    pixels = np.random.default_rng(2).integers(0, 256, (100, 20, 20, 3), dtype=np.uint8)
    np.save(tmp_path / "new.npy", pixels)
    return tmp_path / "new.npy"


def test_parts_are_the_whole(pictures, vit, tmp_path, monkeypatch):
    parts = []
    for number in (1, 2, 3):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"machine{number}"))
        flags = ["--features", vit, "--out", tmp_path / "part.npz", "--shard", f"{number}/3"]
        assert embed(pictures, *flags) == 0
        parts.append(np.load(tmp_path / "part.npz")["x"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert embed(pictures, "--features", vit, "--out", tmp_path / "whole.npz") == 0
    assert [len(part) for part in parts] == [32, 32, 36]
    assert np.concatenate(parts).tobytes() == np.load(tmp_path / "whole.npz")["x"].tobytes()


def test_mistakes(pictures, vit, tmp_path, capsys):
    flags = ["--features", vit, "--out", tmp_path / "x.npz"]
    assert embed(pictures, *flags, "--shard", "1/9") == 2
    assert "has 100 rows, too few for so many parts" in capsys.readouterr().err
    assert embed(pictures, *flags, "--shard", "10/9") == 2
    assert "shard: expected I/N with I from 1 to N" in capsys.readouterr().err
    np.savez(tmp_path / "a.npz", x=np.load(pictures), y=np.zeros(100, dtype=int))
    assert embed(tmp_path / "a.npz", *flags, "--shard", "1/2") == 2
    assert "has labels, or is a table" in capsys.readouterr().err
    assert not (tmp_path / "x.npz").exists()
