"""Image files of any size and colour model, decoded in parallel to uint8 RGB of one size, and those under a folder."""

from __future__ import annotations

import logging
import math
import os
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from cadr.errors import DataError
from cadr.utils import memory
from cadr.utils.progress import counted
from cadr.utils.text import reason, shown

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})
FOREIGN = frozenset({".heic", ".heif", ".avif", ".jxl"})  # pictures, too, as telephones keep them, that are not read
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")  # of Pillow's many, those that people keep photos in
PIXEL_LIMIT = 50_000_000  # a small file can claim to be a huge image
SMALLER = "save it smaller, or cut it into pieces, with another program first"
LARGEST_SIDE = 4096
DRAFT = 3  # times the wanted size, at which a draft is good enough: after resizing no grey level is far off
SHOWN = 20  # of many images that cannot be read: most people have fewer, and can take all away at once
# What becomes of an image file, for people who decode others as these were.
DECODING = (
    "upright by EXIF orientation, the upper 8 bits of 16, what is transparent on white, the first picture of an "
    "animation"
)

_SAMPLES_PER_PIXEL = 277  # a tag of TIFF
logging.getLogger("PIL").addHandler(logging.NullHandler())  # what we say in one sentence it says for each file

_DAMAGE = (OSError, SyntaxError, ValueError, TypeError, IndexError, KeyError, EOFError, struct.error, zlib.error)


class ImageError(DataError):
    """An image cannot be decoded, or does not fit the others."""

    def __init__(self, message: str, unreadable: Unreadable | None = None) -> None:
        super().__init__(message)
        self.unreadable = unreadable or []  # of several that are named together, for whoever goes on to look for more


Unreadable = list[tuple[Path, ImageError]]


def decode_all(paths: Sequence[Path], size: int | None = None) -> NDArray[np.uint8]:
    """(n, h, w, 3). With a size every image is squeezed to size × size; without one all must be alike already."""
    images, unreadable = decode_readable(paths, size)
    check_readable(unreadable, len(paths))
    return images


def decode_readable(paths: Sequence[Path], size: int | None = None) -> tuple[NDArray[np.uint8], Unreadable]:
    """As `decode_all`, with the images that cannot be read beside: their rows are left as they happen to be."""
    check_size(size)
    if not paths:
        raise ImageError("there are no images to read")
    at, example = 0, None  # the first image that can be read: where no size is wanted, all should have its shape
    while size is None and example is None and at < len(paths):
        try:
            example = decode(paths[at])
        except ImageError:  # all that cannot be read are named together
            at += 1
    shape = (size or 1, size or 1, 3) if example is None else example.shape
    images = _room(len(paths), shape)

    def fill(i: int) -> ImageError | None:
        try:
            image = example if i == at and example is not None else decode(paths[i], size)
        except ImageError as error:
            return error
        if image.shape != shape:
            raise ImageError(
                f"{shown(paths[i])} has {image.shape[1]}×{image.shape[0]} pixels, {shown(paths[at])} has "
                f"{shape[1]}×{shape[0]}; choose one size for all with --image-size, such as 64, "
                "or let a pretrained model take them as they are with --features, such as efficientnet-lite0"
            )
        images[i] = image
        return None

    outcomes = _each(fill, len(paths))
    return images, [(path, error) for path, error in zip(paths, outcomes, strict=True) if error is not None]


def _each(fill: Callable[[int], ImageError | None], n: int) -> list[ImageError | None]:
    """What `fill` says of every image: many at a time, as Pillow decodes outside the interpreter lock."""
    with ThreadPoolExecutor(min(32, os.cpu_count() or 1)) as pool:
        try:
            return list(counted(pool.map(fill, range(n)), n, "images read"))
        except DataError:
            pool.shutdown(cancel_futures=True)
            raise
        except RuntimeError as error:
            pool.shutdown(cancel_futures=True)
            if "start new thread" not in str(error):
                raise
    return list(counted(map(fill, range(n)), n, "images read"))  # one after another where no thread may be had


def check_readable(unreadable: Unreadable, total: int) -> None:
    """Name the images that cannot be read, so that they can be dealt with in one go."""
    if len(unreadable) == 1:
        raise ImageError(str(unreadable[0][1]), unreadable) from unreadable[0][1]
    if unreadable:
        more = f" and {len(unreadable) - SHOWN:,} more" if len(unreadable) > SHOWN else ""
        raise ImageError(
            f"{len(unreadable):,} of {total:,} images cannot be read: "
            f"{', '.join(shown(path) for path, _ in unreadable[:SHOWN])}{more}; "
            f"mend them or take them away (of the first: {unreadable[0][1]})",
            unreadable,
        )


def decode(path: Path, size: int | None = None, least: int | None = None) -> NDArray[np.uint8]:
    """One image, upright (EXIF orientation), as RGB on white; of an animation the first picture.

    With a size it is squeezed to size × size. Where no side need be longer than `least`, it may come out smaller.
    """
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > PIXEL_LIMIT:
                raise ImageError(
                    f"{shown(path)} has {image.width}×{image.height} pixels, more than {PIXEL_LIMIT:,} in all; "
                    + SMALLER
                )
            if size or least:  # JPEG alone can be decoded at a half, a quarter or an eighth of its size
                image.draft(None, (DRAFT * (size or least or 1),) * 2)
            return np.asarray(_resized(_upright(path, image), size))
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(f"{shown(path)} has more than {PIXEL_LIMIT:,} pixels; {SMALLER}") from error
    except MemoryError as error:
        raise ImageError(f"{shown(path)} does not fit into memory") from error
    except _DAMAGE as error:
        if isinstance(error, UnidentifiedImageError) and (channels := _tiff_channels(path)) not in (None, 1, 3):
            raise ImageError(
                f"{shown(path)} has {channels} channels, expected 1 (grey), 3 (RGB) or 4 (with transparency); choose "
                "three and save them as RGB, or make a .npz of features of all of them"
            ) from error
        mend = "save it as JPEG" if path.suffix.lower() in FOREIGN else "mend it"
        raise ImageError(
            f"{shown(path)} cannot be decoded as an image ({_damage(path, error)}); {mend} or take it away"
        ) from error


def pixels(name: str, image: Image.Image) -> NDArray[np.uint8]:
    """An image that somebody has opened with Pillow, as it would be read from its file."""
    try:
        return np.asarray(_upright(Path(name), image))
    except _DAMAGE as error:
        raise ImageError(f"{name} cannot be decoded as an image ({reason(error)}); mend it or take it away") from error


def _upright(path: Path, image: Image.Image) -> Image.Image:
    image.load()
    deep = image.mode == "I" and image.format != "TIFF"  # 16 bits, which Pillow keeps in 32
    return _rgb(path, ImageOps.exif_transpose(image), deep)


def _damage(path: Path, error: BaseException) -> str:
    """What is wrong; Pillow would only repeat the name of a file in which it finds none of the formats."""
    if not isinstance(error, UnidentifiedImageError):
        return reason(error)
    with suppress(OSError):
        if path.stat().st_size == 0:
            return "the file is empty"
    return f"it is none of {', '.join(FORMATS)}"


def _tiff_channels(path: Path) -> int | None:
    """Samples per pixel that a TIFF says it has, whether Pillow can read it or not."""
    with suppress(OSError, struct.error, KeyError), path.open("rb") as file:
        order = {b"II*\0": "<", b"MM\0*": ">"}[file.read(4)]
        file.seek(struct.unpack(f"{order}I", file.read(4))[0])
        (entries,) = struct.unpack(f"{order}H", file.read(2))
        for tag, _, _, value in struct.iter_unpack(f"{order}HHI4s", file.read(12 * entries)):
            if tag == _SAMPLES_PER_PIXEL:
                return int(struct.unpack(f"{order}H", value[:2])[0])
    return None


def resize_all(images: NDArray[np.uint8], size: int | None) -> NDArray[np.uint8]:
    """Images that are arrays already, squeezed to size × size."""
    check_size(size)
    if size is None or images.shape[1:3] == (size, size):
        return images
    resized = np.empty((len(images), size, size, 3), dtype=np.uint8)
    for target, image in zip(resized, images, strict=True):
        target[:] = np.asarray(_resized(Image.fromarray(np.ascontiguousarray(image)), size))
    return resized


def check_size(size: int | None) -> None:
    if size is not None and not 1 <= size <= LARGEST_SIDE:
        raise ImageError(f"an image size lies between 1 and {LARGEST_SIDE} pixels, got {size}")


def _room(n: int, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An array to fill, if there is memory for it."""
    needed, there = n * math.prod(shape), memory.available()
    try:
        if there is None or needed <= there:
            return np.empty((n, *shape), dtype=np.uint8)
    except MemoryError:
        pass
    raise ImageError(
        f"{n:,} images of {shape[1]}×{shape[0]} pixels need {needed / 2**30:.1f} GiB of memory, more than there is"
        + ("" if there is None else f" ({there / 2**30:.1f} GiB)")
        + "; make them smaller with --image-size"
    )


def _rgb(path: Path, image: Image.Image, deep: bool) -> Image.Image:
    if deep or image.mode.startswith("I;16"):  # converting would clip 16 bits, not scale them
        levels = np.asarray(image)
        grey = (levels >> 8).astype(np.uint8)
        if "transparency" in image.info:
            grey[levels == image.info["transparency"]] = 255
        return Image.fromarray(grey).convert("RGB")
    if image.mode in ("I", "F"):
        raise ImageError(f"{shown(path)} has {image.mode} pixels of 32 bits; save it with 8 or 16 bits per channel")
    return _on_white(image).convert("RGB")


def _on_white(image: Image.Image) -> Image.Image:
    """As viewers show it: the colours of transparent pixels are arbitrary, and a drawing may be in the alpha alone."""
    if not image.has_transparency_data:
        return image
    if image.mode != "RGBA":
        image = image.convert("RGBA")
    if image.getchannel("A").getextrema() == (255, 255):
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)


def _resized(image: Image.Image, size: int | None) -> Any:
    if size is None or image.size == (size, size):
        return image
    return image.resize((size, size), Image.Resampling.BILINEAR)


class FolderError(DataError):
    """A folder is not laid out as expected."""


class Files(NamedTuple):
    """Files that are examples."""

    noun: str
    suffixes: frozenset[str]
    foreign: frozenset[str] = frozenset()  # of the same kind, but not read

    @property
    def article(self) -> str:
        return "an" if self.noun[0] in "aeiou" else "a"

    @property
    def kinds(self) -> str:
        return ", ".join(sorted(self.suffixes))


IMAGES = Files("image", SUFFIXES, FOREIGN)


def files_in(root: Path, files: Files = IMAGES) -> list[Path]:
    """In order of name."""
    return sorted(_walk(root, files), key=str)


def holds(root: Path, files: Files) -> bool:
    """Whether there is any."""
    return next(_walk(root, files), None) is not None


def _walk(root: Path, files: Files) -> Iterator[Path]:
    """No folder is read twice, so that links to a folder around them end somewhere."""
    waiting, seen = deque([root]), set[tuple[int, int]]()
    while waiting:
        folder = waiting.popleft()
        status = folder.stat()
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        inside = visible(folder)
        yield from files_among(inside, files)
        for path in (path for path in inside if path.is_dir()):
            if path.is_symlink():
                waiting.append(path)
            else:
                waiting.appendleft(path)  # a folder goes by its own name before that of a link to it


def files_among(inside: list[Path], files: Files = IMAGES) -> list[Path]:
    """Of what a folder holds.

    Those of a kind that is not read are among them, to be named by whoever reads them, unless the same lies beside them
    as one that is.
    """
    read = {path.stem for path in inside if path.suffix.lower() in files.suffixes}
    kinds = ((path, path.suffix.lower()) for path in inside)
    wanted = (
        path for path, kind in kinds if kind in files.suffixes or (kind in files.foreign and path.stem not in read)
    )
    return [path for path in wanted if path.is_file()]  # a pipe is no image


def visible(folder: Path) -> list[Path]:
    """What the folder holds, in order of name, less what systems hide there.

    As ._001.jpg, which macOS writes beside 001.jpg on other disks, and is no picture.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise FolderError(f"{shown(folder)} cannot be read: {error.strerror}") from error
    for entry in found:
        if entry.is_symlink() and not Path(entry).exists():
            target = Path(entry).readlink()
            raise FolderError(
                f"{shown(entry.path)} is a link to {shown(target)}, which is not there; mend it or take it away"
            )
    return [folder / entry.name for entry in found]
