"""What was computed before is not computed again: not after a kill, and not for data that have grown since."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cadr.data.raw import PictureFiles, Pictures, Texts, raw_of
from cadr.data.sources.images import ImageError
from cadr.embedding import embed as module
from cadr.embedding import store
from cadr.embedding.embed import embed
from cadr.embedding.encoder import Encoder
from cadr.embedding.registry import Pretrained
from cadr.errors import DataError


class Lengths(Encoder):
    """Texts to what they are long, and pictures to their mean, four at a time."""

    batch, detail = 4, None

    def __init__(self, modality):
        super().__init__("lengths")
        self.modality, self.seen, self.stop_after = modality, [], None

    def encode(self, batch):
        if self.stop_after is not None and len(self.seen) >= self.stop_after:
            raise KeyboardInterrupt
        self.seen += batch
        values = [len(each) if isinstance(each, str) else each.mean() for each in batch]
        return np.array([[value, -value] for value in values], dtype=np.float32)


class _Model:
    """Stands in for a model on disk."""

    def __init__(self, encoder, kept_as):
        self.encoder, self.kept_as = encoder, kept_as

    def load(self, modality):
        assert self.encoder is not None, "the model was loaded"
        return self.encoder


def model(encoder, kept_as="a" * 40):
    return _Model(encoder, kept_as)


TEXTS = tuple("x" * (1 + n % 7) + str(n) for n in range(30))


def expected(texts):
    return np.array([[len(text), -len(text)] for text in texts], dtype=np.float32)


def test_once_and_no_more():
    encoder = Lengths("texts")
    np.testing.assert_array_equal(embed(model(encoder), Texts(TEXTS)), expected(TEXTS))
    assert sorted(encoder.seen) == sorted(TEXTS)
    shuffled = TEXTS[::-1] + TEXTS[:3]
    np.testing.assert_array_equal(embed(model(None), Texts(shuffled)), expected(shuffled))  # the model is not loaded
    grown = Lengths("texts")
    np.testing.assert_array_equal(embed(model(grown), Texts((*TEXTS, "new"))), expected((*TEXTS, "new")))
    assert grown.seen == ["new"]


def test_items_that_are_alike_are_computed_once():
    encoder = Lengths("texts")
    texts = ("owl", "wren", "owl", "owl")
    np.testing.assert_array_equal(embed(model(encoder), Texts(texts)), expected(texts))
    assert sorted(encoder.seen) == ["owl", "wren"]


def test_another_model_computes_its_own():
    embed(model(Lengths("texts")), Texts(TEXTS))
    other = Lengths("texts")
    embed(model(other, "b" * 40), Texts(TEXTS))
    assert len(other.seen) == len(TEXTS)


def test_what_was_stopped_half_way_goes_on_there():
    first = Lengths("texts")
    first.stop_after = 12
    with pytest.raises(KeyboardInterrupt):
        embed(model(first), Texts(TEXTS))
    second = Lengths("texts")
    np.testing.assert_array_equal(embed(model(second), Texts(TEXTS)), expected(TEXTS))
    assert len(first.seen) == 12
    assert sorted(first.seen + second.seen) == sorted(TEXTS)


def test_a_kill_costs_what_came_after_the_last_file(monkeypatch, cache):
    """Nothing may be left to the end: a killed process writes no more."""
    monkeypatch.setattr(module, "_SAVED", 0.0)
    encoder, files = Lengths("texts"), []
    encode = encoder.encode

    def counting(batch):
        files.append(len(list(cache.rglob("*.npz"))))
        return encode(batch)

    monkeypatch.setattr(encoder, "encode", counting)
    embed(model(encoder), Texts(TEXTS))
    assert files == list(range(8))  # one more after every batch


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(path.read_bytes()[:-40]), lambda path: path.unlink()])
def test_a_damaged_file_is_computed_again(damage, cache):
    embed(model(Lengths("texts")), Texts(TEXTS))
    (path,) = cache.rglob("*.npz")
    damage(path)
    encoder = Lengths("texts")
    np.testing.assert_array_equal(embed(model(encoder), Texts(TEXTS)), expected(TEXTS))
    assert len(encoder.seen) == len(TEXTS)


def test_changed_bytes_are_not_taken_for_vectors(cache):
    embed(model(Lengths("texts")), Texts(TEXTS))
    (path,) = cache.rglob("*.npz")
    content = bytearray(path.read_bytes())
    at = content.index(expected(TEXTS[:1]).tobytes()[:3])
    content[at] ^= 1
    path.write_bytes(content)
    encoder = Lengths("texts")
    np.testing.assert_array_equal(embed(model(encoder), Texts(TEXTS)), expected(TEXTS))


@pytest.mark.parametrize("home", ["file", "none"])
def test_without_a_place_to_keep_them(home, tmp_path, monkeypatch):
    if home == "file":
        (tmp_path / "cache").write_text("in the way")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "")
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    for _ in range(2):
        encoder = Lengths("texts")
        np.testing.assert_array_equal(embed(model(encoder), Texts(TEXTS)), expected(TEXTS))
        assert len(encoder.seen) == len(TEXTS)


def test_many_small_files_become_one(cache):
    for text in TEXTS[: store._SMALL + 1]:
        embed(model(Lengths("texts")), Texts((text,)))
    assert len(list(cache.rglob("*.npz"))) == 2  # the sixteenth put them together, and one came after
    kept = TEXTS[: store._SMALL + 1]
    np.testing.assert_array_equal(embed(model(None), Texts(kept)), expected(kept))


def test_pictures_are_known_by_what_their_file_holds(tmp_path):
    for n in range(6):
        Image.new("RGB", (8, 6), (40 * n, 0, 0)).save(tmp_path / f"{n}.png")
    files = sorted(tmp_path.glob("*.png"))
    found = embed(model(Lengths("pictures")), PictureFiles(tuple(files)))
    np.testing.assert_allclose(found[:, 0], 40 * np.arange(6) / 3, rtol=1e-6)
    shutil.move(files[0], tmp_path / "renamed.png")
    again = embed(model(None), PictureFiles((tmp_path / "renamed.png", *files[1:])))
    np.testing.assert_array_equal(again, found)
    Image.new("RGB", (8, 6), (255, 255, 255)).save(files[1])
    changed = embed(model(Lengths("pictures")), PictureFiles(tuple(files[1:])))
    np.testing.assert_allclose(changed[:, 0], [255, *(40 * np.arange(2, 6) / 3)], rtol=1e-6)


def test_pictures_that_cannot_be_read_are_named_together_when_the_others_are_done(tmp_path):
    for n in range(10):
        Image.new("RGB", (8, 6), (20 * n, 0, 0)).save(tmp_path / f"{n}.png")
    for n in (3, 7):
        (tmp_path / f"{n}.png").write_bytes(b"no picture")
    files = tuple(sorted(tmp_path.glob("*.png")))
    first = Lengths("pictures")
    with pytest.raises(ImageError, match=r"2 of 10 images cannot be read: .*3.png, .*7.png; mend them or take them"):
        embed(model(first), PictureFiles(files))
    assert len(first.seen) == 8
    Image.new("RGB", (8, 6)).save(files[3])
    with pytest.raises(ImageError, match=r"7.png cannot be decoded as an image"):
        embed(model(Lengths("pictures")), PictureFiles(files))


def test_large_photographs_are_read_smaller_but_not_too_small(tmp_path):
    Image.new("RGB", (1600, 1200)).save(tmp_path / "a.jpg")
    files = PictureFiles((tmp_path / "a.jpg",))
    assert files.read(0).shape == (1200, 1600, 3)
    assert files.read(0, 100).shape == (300, 400, 3)  # three times as large as need be
    assert files.read(0, 500).shape == (1200, 1600, 3)


def test_items_in_memory(tmp_path):
    array = np.zeros((2, 4, 4, 3), np.uint8)
    assert isinstance(raw_of("X", array), Pictures)
    assert isinstance(raw_of("X", ["owl", "wren"]), Texts)
    assert isinstance(raw_of("X", np.array(["owl", "wren"])), Texts)
    assert isinstance(raw_of("X", [tmp_path, tmp_path]), PictureFiles)
    for other in (np.zeros((2, 3)), [1.0], [], ["owl", 1]):
        with pytest.raises(DataError, match="X: expected texts, or pictures as paths"):
            raw_of("X", other)
    assert Pictures(array).key(0) == Pictures(array).key(1) != Pictures(array.reshape(2, 2, 8, 3)).key(0)
    assert Texts(("\udcff",)).key(0) != Texts(("?",)).key(0)  # of a file that is no UTF-8


def test_it_says_how_long_it_will_take(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("cadr.utils.progress.time.monotonic", lambda: now[0])
    encoder = Lengths("texts")
    encode = encoder.encode

    def slowly(batch):
        now[0] += 20.0
        return encode(batch)

    monkeypatch.setattr(encoder, "encode", slowly)
    embed(model(encoder), Texts(TEXTS))
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "8 of 30 texts embedded with lengths, 1 min 50 s left"
    assert said[-1].startswith("24 of 30 texts")


def test_a_name_is_found_before_anything_is_read():
    with pytest.raises(DataError, match="there is no such file or folder"):
        Pretrained.find("/nowhere/model.onnx")
