"""Folders of pictures as people have them: too large, damaged, of many formats."""

import sys

import numpy as np
import pytest
from PIL import Image, ImageOps

from cadr.data.sources import images
from cadr.data.sources.images import ImageError, decode, decode_all
from cadr.utils import memory, progress
from tests.data.writers import write_image

NOISE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)


def test_memory_is_a_sensible_amount():
    there = memory.available()
    assert there is not None
    assert 1 << 24 < there < 1 << 50


@pytest.mark.parametrize(
    ("limit", "used", "statistics", "files"),
    [
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
    ],
)
def test_a_container_has_less_memory_than_its_machine(limit, used, statistics, files, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    (tmp_path / "memory").mkdir()
    (tmp_path / limit).write_text("max\n")
    assert (memory.available() or 0) > 1_000_000
    (tmp_path / limit).write_text("1000000\n")
    assert memory.available() == 1_000_000
    (tmp_path / used).write_text("300000\n")
    (tmp_path / statistics).write_text(f"anon 5\n{files} 100000\nactive_file 7\n")
    assert memory.available() == 800_000  # files that were read lately are given up at need


@pytest.mark.parametrize("known", [True, False])
def test_pictures_beyond_memory_are_refused_before_they_are_read(known, tmp_path, monkeypatch):
    files = [write_image(tmp_path / f"{i}.png", NOISE) for i in range(3)]
    monkeypatch.setattr(memory, "available", lambda: 2 * NOISE.nbytes if known else None)
    if not known:
        monkeypatch.setattr(np, "empty", _no_memory)
    with pytest.raises(ImageError, match=r"3 images of 64×48 pixels need 0.0 GiB .* smaller with --image-size"):
        decode_all(files)
    if known:
        assert decode_all(files[:2]).nbytes == 2 * NOISE.nbytes
        assert decode_all(files, 32).shape == (3, 32, 32, 3)


def test_a_picture_with_too_many_pixels_in_all_is_refused(tmp_path, monkeypatch):
    path, pixels = write_image(tmp_path / "large.png", NOISE), NOISE.shape[0] * NOISE.shape[1]
    monkeypatch.setattr(images, "PIXEL_LIMIT", pixels)
    assert decode(path).shape == NOISE.shape
    monkeypatch.setattr(images, "PIXEL_LIMIT", pixels - 1)
    for size in (None, 16):
        with pytest.raises(ImageError, match=r"large\.png has 64×48 pixels, more than 3,071 in all; save it smaller"):
            decode(path, size)


def _no_memory(*_, **__):
    raise MemoryError


@pytest.mark.parametrize("size", [None, 16])
def test_all_damaged_pictures_are_named_together(size, tmp_path):
    files = [write_image(tmp_path / f"{i:02}.jpg", NOISE) for i in range(20)]
    for i in (0, 7, 9):
        files[i].write_bytes(b"" if i else files[i].read_bytes()[:300])
    with pytest.raises(ImageError) as caught:
        decode_all(files, size)
    assert str(caught.value).startswith(
        f"3 of 20 images cannot be read: {files[0]}, {files[7]}, {files[9]}; mend them or take them away (of the first:"
    )
    files += [tmp_path / f"{i}.jpg" for i in range(20, 35)]
    for file in files:
        file.write_bytes(b"noise")
    with pytest.raises(ImageError, match=r"35 of 35 images cannot be read: .*19\.jpg and 15 more; mend them"):
        decode_all(files, size)


@pytest.mark.parametrize("size", [20, 64, 128])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_large_jpegs_are_drafted_and_nearly_the_same(size, mode, orientation, tmp_path):
    random = np.random.default_rng(1)
    coarse = Image.fromarray(random.integers(0, 256, (30, 40, 3), np.uint8))
    pixels = np.asarray(coarse.resize((800, 600), Image.Resampling.BICUBIC)).copy()
    pixels[::31], pixels[:, ::47] = 0, 255  # sharp lines, finer than the wanted pixels
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).convert(mode).save(tmp_path / "photo.jpg", quality=95, exif=exif)
    drafted = images.decode(tmp_path / "photo.jpg", size)
    with Image.open(tmp_path / "photo.jpg") as image:
        upright = ImageOps.exif_transpose(image).convert("RGB")
        full = np.asarray(upright.resize((size, size), Image.Resampling.BILINEAR))
    error = np.abs(drafted.astype(int) - full.astype(int))
    assert error.any() == (size < 128)  # where it pays
    assert error.mean() < 1.2
    assert error.max() <= 12


@pytest.mark.parametrize("most", [65535, 1023])
def test_16_bits_of_grey_are_scaled(most, tmp_path):
    levels = np.arange(256).reshape(16, 16) * (most // 256)
    body = levels.astype(">u2").tobytes()
    (tmp_path / "deep.pgm").write_bytes(b"P5 16 16 %d\n" % most + body)
    grey = images.decode(tmp_path / "deep.pgm")[..., 0]
    assert np.abs(grey.astype(int) - levels * 255 / most).max() <= 1


@pytest.mark.parametrize(("terminal", "seconds"), [(True, 0.0), (True, 60.0), (False, 0.0)])
def test_a_terminal_sees_how_far_reading_is(terminal, seconds, tmp_path, monkeypatch, capsys):
    files = [write_image(tmp_path / f"{i}.png", NOISE) for i in range(3)]
    monkeypatch.setattr(progress, "SECONDS", seconds)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    decode_all(files)
    said = capsys.readouterr()
    expected = "".join(f"\r{i} of 3 images read" for i in (1, 2, 3)) + "\r\x1b[K"
    assert (said.out, said.err) == ("", expected if terminal and not seconds else "")
