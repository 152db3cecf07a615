"""Data sets of Hugging Face that are on this machine: a folder that `save_to_disk` wrote, or `hf:NAME` from its cache.

Nothing is downloaded, and no script of a data set is run: Arrow files are read. A set with a column of images holds
pictures, any other is a table. The split called train is taken, or the only one; `hf:NAME@SPLIT` and the folder of a
split name another.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cadr.data.pool import Pool
from cadr.data.raw import Pictures, embed_pool
from cadr.data.sources import parquet
from cadr.data.sources.arrays import array_blocks
from cadr.data.sources.base import Block, Blocks, Kind, Options, PredictionDataError, Wanted
from cadr.data.sources.images import ImageError, decode, pixels, resize_all
from cadr.data.sources.labels import class_order, index_labels, label_text, names_of_texts
from cadr.errors import DataError
from cadr.utils.files import expand_home
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import listed, reason

NAME, LABELS_BESIDE = "a data set of Hugging Face", False
KIND: Kind | None = None
PREFIX = "hf:"
TRAIN = "train"
_STATE, _SPLITS, _INFO = "state.json", "dataset_dict.json", "dataset_info.json"


def matches(path: Path) -> bool:
    """A saved set, a saved set of splits, or the folder of one in the cache, perhaps with a split behind it."""
    if (path / _STATE).is_file() or (path / _SPLITS).is_file():
        return True
    folder = path if path.exists() else path.parent
    cached = (folder / _INFO).is_file() and not (folder / _STATE).is_file()
    return cached and any(folder.glob("*.arrow"))


def locate(spec: str) -> Path:
    """The folder of hf:NAME, hf:NAME:CONFIG or hf:NAME@SPLIT, or of a path behind `hf:`."""
    name, at, split = spec.removeprefix(PREFIX).partition("@")
    if expand_home(name).is_dir():
        folder = expand_home(name)
        return folder / split if at else folder
    name, _, config = name.partition(":")
    cache = Path(_library(spec).config.HF_DATASETS_CACHE)
    wanted = {form.replace("/", "___") for form in (name.lower(), _snake(name))}
    folders = [path for path in _folders(cache) if path.name.lower() in wanted]
    configs = [path for folder in folders for path in _folders(folder) if not config or path.name == config]
    if not folders:
        raise DataError(
            f"there is no data set called {name} in {cache}, and nothing is downloaded; get it with "
            f"datasets.load_dataset({name!r}) on a machine with network, or name a folder that save_to_disk wrote"
        )
    if not configs:
        raise DataError(f"the configuration {config!r} of {name} is not in {cache}; load it with datasets.load_dataset")
    if len(configs) > 1:
        several = listed([path.name for path in configs])
        raise DataError(f"{name} has the configurations {several}; add one, as in hf:{name}:{configs[0].name}")
    found = sorted((info.parent for info in configs[0].glob(f"*/*/{_INFO}")), key=lambda path: path.stat().st_mtime)
    if not found:
        raise DataError(f"{configs[0]} holds no Arrow files of {name}; load it once more with datasets.load_dataset")
    return found[-1] / split if at else found[-1]


def open_pool(path: Path, options: Options) -> Pool:
    """A label is missing where it is null, −1 or blank."""
    data = _open(path)
    if options.label_column not in data.column_names:
        raise DataError(
            f"{path} has no column {options.label_column!r}; its columns are {listed(data.column_names)}; "
            "--label-column names the one with the labels"
        )
    image = _image_column(data)
    if image is None:
        return replace(parquet.table_of(path, _table(data, options.label_column), options), name=_name(path))
    texts = _labels(data, options.label_column)
    names = class_order(str(path), texts)
    labels = index_labels(str(path), texts, names)
    pictures = list(_pictures(path, data, image))
    if options.features is not None:
        (vectors,), embedded = embed_pool(options.features, Pictures(tuple(pictures)))
        return Pool(vectors, labels, names, _name(path), embedded=embedded)
    return Pool(_array(path, pictures, options.image_size), labels, names, _name(path))


def open_blocks(path: Path, wanted: Wanted, labels: Path | None) -> Blocks:
    data = _open(path)
    image = _image_column(data)
    if image is None:
        if wanted.kind == "image":
            raise wanted.other_kind(f"{path} is a table")
        return parquet.table_blocks(path, _table(data, wanted.label_column), wanted)
    given = wanted.label_column in data.column_names
    names = names_of_texts(_labels(data, wanted.label_column), wanted.class_names) if given else None
    pictures = list(_pictures(path, data, image))
    if wanted.raw != "pictures":
        return array_blocks(str(path), _array(path, pictures, wanted.image_size), names, wanted)

    def read(first: int, last: int | None) -> Iterator[Block]:
        for part in range(parts)[first:last]:
            rows = slice(part * parquet.ROWS, min((part + 1) * parquet.ROWS, len(pictures)))
            examples = wanted.embed(Pictures(tuple(pictures[rows])))
            wanted.check(str(path), examples)
            yield Block(examples, None if names is None else names[rows], [[*range(rows.start, rows.stop)]])

    parts = -(-len(pictures) // parquet.ROWS)
    return Blocks(["row"], given, read, parts, {}, numbered=True)


def _library(what: object) -> Any:
    return optional_import("datasets", f"reading {what}", "datasets")


def _snake(name: str) -> str:
    """As the cache writes it: MyData is my_data."""
    owner, slash, own = name.rpartition("/")
    own = re.sub(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", own).lower()
    return f"{owner.lower()}{slash}{own}"


def _folders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir()) if path.is_dir() else []


def _open(path: Path) -> Any:
    """A datasets.Dataset."""
    library = _library(path)
    try:
        if (path / _SPLITS).is_file():
            splits = [folder.name for folder in _folders(path) if (folder / _STATE).is_file()]
            data = library.load_from_disk(str(path / _chosen(path, splits)))
        elif (path / _STATE).is_file():
            data = library.load_from_disk(str(path))
        else:
            folder, split = (path, None) if (path / _INFO).is_file() else (path.parent, path.name)
            files = {file: found[1] for file in sorted(folder.glob("*.arrow")) if (found := _split_of(file))}
            chosen = _chosen(folder, sorted(set(files.values())), split)
            parts = [library.Dataset.from_file(str(file)) for file, of in files.items() if of == chosen]
            data = library.concatenate_datasets(parts)
    except DataError:
        raise
    except Exception as error:  # of a damaged file, whatever the library makes of it
        raise DataError(f"{path} cannot be read as {NAME}: {reason(error)}") from error
    if len(data) == 0:
        raise PredictionDataError(f"{path} has no rows")
    return data


def _split_of(file: Path) -> re.Match[str] | None:
    return re.fullmatch(r".+-([\w.]+?)(?:-\d{5}-of-\d{5})?", file.stem)


def _chosen(path: Path, splits: list[str], wanted: str | None = None) -> str:
    name = wanted or (TRAIN if TRAIN in splits or len(splits) != 1 else splits[0])
    if name not in splits:
        raise DataError(f"{path} has no split {name!r}; it has {listed(splits) or 'none'}: name one with @SPLIT")
    return name


def _name(path: Path) -> str:
    return path.name


def _image_column(data: Any) -> str | None:
    kinds = {name: type(feature).__name__ for name, feature in data.features.items()}
    found = [name for name, kind in kinds.items() if kind == "Image"]
    if len(found) > 1:
        raise DataError(f"there are {len(found)} columns of images, {listed(found)}; keep one with remove_columns")
    return found[0] if found else None


def _labels(data: Any, column: str) -> list[str]:
    """Names of classes, blank where missing."""
    names, values = getattr(data.features[column], "names", None), data.with_format("arrow")[:][column].to_pylist()
    if names is not None:
        return ["" if value is None or value < 0 else str(names[value]) for value in values]
    return ["" if value == -1 else label_text(value) for value in values]


def _table(data: Any, label_column: str) -> Any:
    """An Arrow table, with names of classes for their numbers."""
    pyarrow = optional_import("pyarrow", "reading tables of Hugging Face", "datasets")
    whole = data.with_format("arrow")[:]
    if label_column in data.column_names:
        texts = pyarrow.array(_labels(data, label_column), pyarrow.string())
        whole = whole.set_column(whole.column_names.index(label_column), label_column, texts)
    return whole


def _pictures(path: Path, data: Any, column: str) -> Iterator[NDArray[np.uint8]]:
    stored = data.select_columns([column]).cast_column(column, _library(path).Image(decode=False))
    for row, cell in enumerate(stored):
        where = f"{path}, row {row}"
        content = cell[column] or {}
        if content.get("bytes") is not None:
            try:
                with Image.open(io.BytesIO(content["bytes"])) as image:
                    yield pixels(where, image)
            except (OSError, ValueError, Image.DecompressionBombError) as error:
                raise ImageError(f"{where} cannot be decoded as an image ({reason(error)}); take it away") from error
        elif content.get("path"):
            yield decode(Path(content["path"]))
        else:
            raise ImageError(f"{where} has no image; take the row away")


def _array(path: Path, pictures: list[NDArray[np.uint8]], size: int | None) -> NDArray[np.uint8]:
    if size is not None:
        return np.concatenate([resize_all(picture[None], size) for picture in pictures])
    shapes = {picture.shape for picture in pictures}
    if len(shapes) > 1:
        raise ImageError(f"{path} holds images of {len(shapes)} sizes; add --image-size, or --features")
    return np.stack(pictures)
