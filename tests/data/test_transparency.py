"""Pictures with transparency are read as viewers show them, on white."""

import io

import numpy as np
import pytest
from PIL import Image

from cadr.data.sources.arrays import from_arrays
from cadr.data.sources.base import Wanted
from cadr.data.sources.images import decode
from cadr.data.sources.registry import open_blocks
from tests.data.loose import open_data

RANDOM = np.random.default_rng(0)
COLOUR = RANDOM.integers(0, 256, (8, 8, 3), np.uint8)
ALPHA = RANDOM.integers(0, 256, (8, 8), np.uint8)
INK = np.eye(8, dtype=bool)  # where the drawing is
DRAWING = np.where(INK[..., None], 0, 255).astype(np.uint8).repeat(3, axis=-1)


def drawing(mode):
    """Black ink; the rest is transparent, and black as well wherever the mode can say so."""
    ink = Image.fromarray(np.where(INK, 255, 0).astype(np.uint8))
    if mode in ("RGBA", "LA"):
        image = Image.new(mode, (8, 8))
        image.putalpha(ink)
        return image, {}
    if mode == "P":
        image = Image.fromarray(INK.astype(np.uint8))
        image.putpalette([0, 0, 0] * 2)
        return image, {"transparency": 0}
    if mode == "P with alphas":
        return drawing("P")[0], {"transparency": bytes([0, 255])}
    image = Image.new(mode, (8, 8), "#090909")
    image.paste("black", mask=ink)
    return image, {"transparency": 9 if mode == "L" else (9, 9, 9)}


def saved(path, image, options):
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


CASES = [(mode, "png") for mode in ("RGBA", "LA", "P", "P with alphas", "L", "RGB")]
CASES += [("RGBA", "tif"), ("RGBA", "webp"), ("P", "gif")]


@pytest.mark.parametrize(("mode", "suffix"), CASES)
def test_ink_on_nothing_is_ink_on_white(mode, suffix, tmp_path):
    image, options = drawing(mode)
    if suffix == "webp":
        options["lossless"] = True
    assert np.array_equal(decode(saved(tmp_path / f"a.{suffix}", image, options)), DRAWING)


def test_half_transparent_colours_are_mixed_with_white(tmp_path):
    path = saved(tmp_path / "a.png", Image.fromarray(np.dstack([COLOUR, ALPHA])), {})
    share = ALPHA[..., None] / 255
    assert np.abs(decode(path) - (share * COLOUR + (1 - share) * 255)).max() < 1


def test_the_picture_is_put_on_white_before_it_is_resized(tmp_path):
    path = saved(tmp_path / "a.png", drawing("RGBA")[0], {})
    expected = Image.fromarray(DRAWING).resize((4, 4), Image.Resampling.BILINEAR)
    assert np.array_equal(decode(path, 4), np.asarray(expected))


def test_one_of_16_bits_of_grey_may_be_transparent(tmp_path):
    levels = np.where(INK, 0x0102, 0x0101).astype(np.uint16)  # alike in 8 bits
    path = saved(tmp_path / "a.png", Image.fromarray(levels), {"transparency": 0x0101})
    assert np.array_equal(decode(path)[..., 0], np.where(INK, 1, 255))


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_opaque_pictures_keep_every_bit(mode, tmp_path):
    plain = Image.fromarray(COLOUR).convert({"RGBA": "RGB", "LA": "L"}.get(mode, mode))
    shown = np.asarray(plain.convert("RGB"))
    unused = next(level for level in range(256) if level not in np.asarray(plain))
    options = {"L": {"transparency": unused}, "RGB": {"transparency": (unused,) * 3}, "P": {"transparency": 255}}
    path = saved(tmp_path / "a.png", plain.convert(mode), options.get(mode, {}))
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        assert image.has_transparency_data
    assert np.array_equal(decode(path), shown)


def test_what_is_trained_on_and_what_is_predicted_on_are_read_alike(tmp_path):
    for name in ("a/1.png", "b/2.png"):
        saved(tmp_path / name, drawing("RGBA")[0], {})
    (block,) = open_blocks(str(tmp_path), Wanted((8, 8, 3), ("a", "b"))).blocks
    assert np.array_equal(open_data(tmp_path).examples, np.stack([DRAWING] * 2))
    assert np.array_equal(block.examples, np.stack([DRAWING] * 2))


def test_arrays_are_read_as_files_are(tmp_path, monkeypatch):
    levels, alpha = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    shown = np.dstack([levels, levels[::-1], levels[:, ::-1], alpha])  # every level of red with every transparency
    path = saved(tmp_path / "a.png", Image.fromarray(shown), {})
    monkeypatch.setattr("cadr.data.pool.CHUNK", 5 * 256 * 4)  # five rows at a time
    rows = shown[:, None]
    assert np.array_equal(from_arrays(rows, np.arange(len(rows)) % 2).examples[:, 0], decode(path))


def test_opaque_arrays_are_not_copied():
    opaque = np.concatenate([np.stack([COLOUR] * 4), np.full((4, 8, 8, 1), 255, np.uint8)], axis=-1)
    found = from_arrays(opaque, [0, 1, 0, 1]).examples
    assert np.shares_memory(found, opaque)
    assert (found == COLOUR).all()
