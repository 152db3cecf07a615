"""Rows to predict on in many files: a folder of tables, and whatever lies in an object store.

Through fsspec, what a URL names is copied to this machine file by file, as it is needed, and removed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from cadr.data.sources.base import Block, Blocks, PredictionDataError, Wanted
from cadr.data.sources.csv_file import CSV_SUFFIXES
from cadr.data.sources.images import IMAGES, Files, files_in
from cadr.data.sources.labels import names_of_texts
from cadr.data.sources.picture import picture_blocks
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import listed, reason

TABLES = Files("table", frozenset({*CSV_SUFFIXES, ".parquet", ".pq"}))
Open = Callable[[Path], Blocks]  # a file on this machine
Local = Callable[[str], AbstractContextManager[Path]]  # a file by its name, brought to this machine


def is_url(spec: str) -> bool:
    return "://" in spec


def table_folder(root: Path, open_file: Open) -> Blocks:
    names = [file.relative_to(root).as_posix() for file in files_in(root, TABLES)]
    return table_blocks(str(root), names, lambda name: nullcontext(root / name), open_file)


def table_blocks(where: str, names: list[str], local: Local, open_file: Open) -> Blocks:
    """Tables alike, one after another by name; `file` says from which a row is. Each is a part."""
    with local(names[0]) as path:
        first = open_file(path)
    if "file" in first.columns:
        raise PredictionDataError(f"{where}: the tables have a column 'file', which is to say where a row is from")

    def read(start: int, stop: int | None) -> Iterator[Block]:
        for name in names[start:stop]:
            with local(name) as path:
                opened = open_file(path)
                if opened[:2] != first[:2] or opened.types != first.types:
                    raise PredictionDataError(
                        f"{where}: {name} has the columns {listed(opened.columns)} beside the features, and {names[0]} "
                        f"{listed(first.columns)}{'' if opened.columns != first.columns else ', of other types'}; "
                        "predict on them apart"
                    )
                for block in opened.blocks:
                    yield block._replace(kept=[[name] * len(block.examples), *block.kept])

    columns = ["file", *first.columns]
    return Blocks(columns, first.has_labels, read, len(names), first.types, first.numbered)


def open_url(url: str, wanted: Wanted, open_file: Open) -> Blocks:
    """A file, a folder of tables, or a folder of pictures whose classes' folders are labels."""
    store, root = _connect(url)
    names = _names(store, root, url)
    if names == [""]:
        folder = TemporaryDirectory(prefix="cadr-")  # which lasts as long as anybody may read from it
        opened = open_file(_copy(store, root, Path(folder.name) / PurePosixPath(root).name, url))
        return opened._replace(read=_holding(opened.read, folder))
    suffixes = {name: PurePosixPath(name).suffix.lower() for name in names}

    @contextmanager
    def local(name: str) -> Iterator[Path]:
        with TemporaryDirectory(prefix="cadr-") as folder:
            yield _copy(store, f"{root}/{name}", Path(folder) / name, url)

    @contextmanager
    def together(files: list[Path]) -> Iterator[list[Path]]:
        with TemporaryDirectory(prefix="cadr-") as folder:
            yield [_copy(store, f"{root}/{file}", Path(folder) / file, url) for file in files]

    kind = TABLES if wanted.kind == "features" else IMAGES
    found = [name for name in names if suffixes[name] in kind.suffixes]
    if not found:
        raise PredictionDataError(f"{url}: there are no {kind.noun}s ({kind.kinds})")
    if kind is TABLES:
        return table_blocks(url, found, local, open_file)
    files = [Path(name) for name in found]
    texts = [f.parts[0] if len(f.parts) > 1 and f.parts[0] in wanted.class_names else "" for f in files]
    return picture_blocks(files, files, names_of_texts(texts, wanted.class_names), wanted, together)


def _connect(url: str) -> tuple[Any, str]:
    fsspec = optional_import("fsspec.core", f"reading {url}", "ray")
    try:
        store, root = fsspec.url_to_fs(url)
    except (ImportError, ValueError, OSError) as error:  # for most stores it takes a package of their own
        raise PredictionDataError(f"{url} cannot be opened: {reason(error)}") from None
    return store, str(root).rstrip("/")


def _names(store: Any, root: str, url: str) -> list[str]:
    """Of all files under a folder, in order, relative to it; a file is "" alone. Hidden ones are passed over."""
    try:
        if store.isfile(root):
            return [""]
        under = sorted(str(name).removeprefix(root).lstrip("/") for name in store.find(root))
    except Exception as error:  # a store can fail in any way at all
        raise PredictionDataError(f"{url} cannot be read: {reason(error)}") from None
    names = [name for name in under if not any(part.startswith(".") for part in PurePosixPath(name).parts)]
    if not names:
        raise PredictionDataError(f"{url}: there is no such file or folder, or nothing in it")
    return names


def _copy(store: Any, name: str, path: Path, url: str) -> Path:
    if ".." in PurePosixPath(name).parts:
        raise PredictionDataError(f"{url} has a file {name!r}, whose name leads out of it")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        store.get_file(name, str(path))
    except Exception as error:
        raise PredictionDataError(f"{name} cannot be copied from {url}: {reason(error)}") from None
    return path


def _holding(read: Any, folder: Any) -> Any:
    def held(start: int, stop: int | None) -> Iterator[Block]:
        assert folder is not None
        yield from read(start, stop)

    return held
