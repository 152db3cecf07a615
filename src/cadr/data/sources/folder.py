"""Images in folders, or texts (`text_folder.py`).

Either one folder per class, with images anywhere under it, and an `unlabelled/` beside them (and perhaps a `test/` with
folders of the same classes, and runs); or images anywhere under a folder and a CSV of `file,label`, where a blank label
is missing and so is one for a file that the CSV does not name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import MISSING, Pool
from cadr.data.raw import Embedded, PictureFiles, embed_pool
from cadr.data.sources import label_exports
from cadr.data.sources.base import Blocks, Kind, Options, Wanted
from cadr.data.sources.csv_file import LABEL_HINT, column, read_csv
from cadr.data.sources.images import IMAGES, Files, FolderError, decode_all, files_among, files_in, visible
from cadr.data.sources.labels import Names, check_unlike, class_order, index_labels, label_spelling, names_of_texts
from cadr.data.sources.more_labels import with_file_labels
from cadr.data.sources.picture import picture_blocks
from cadr.data.sources.texts import ADVICE, TEXTS, read_texts
from cadr.utils.files import as_there, check_name, real_path
from cadr.utils.text import counted, listed, shown

EXAMPLES = Files("example", IMAGES.suffixes | TEXTS.suffixes, IMAGES.foreign)
NAME, LABELS_BESIDE = "a folder, which is read as images", True
KIND: Kind | None = "image"
UNLABELLED = ("unlabelled", "unlabeled")
PARTS = ("train", "training", "val", "valid", "validation")  # of data: no classes, if they hold folders alone
LABELS = "labels.csv"


def matches(path: Path) -> bool:
    return path.is_dir()


def open_pool(root: Path, options: Options, kind: Files = IMAGES) -> Pool:
    """labels.csv inside it is used when no other file is named.

    The export of an annotation tool adds to a folder per class, and labels a plain one.
    """
    labels, label_column = find_labels(root, options.labels), options.label_column
    if labels is None:
        return _by_class(root, kind, options)
    if labels.suffix.lower() in label_exports.SUFFIXES and any((root / name).is_dir() for name in UNLABELLED):
        found = labelled_files(root, labels, "file", label_column, kind)
        return with_file_labels(_by_class(root, kind, options), root, labels, found)
    listed = labelled_files(root, labels, "file", label_column, kind)
    files = files_under(root, kind, listed)
    texts = [listed.get(f, "") for f in files]
    names = class_order(str(labels), texts)
    return _pool(root, kind, options, files, index_labels(str(labels), texts, names), names)


def open_blocks(root: Path, wanted: Wanted, labels: Path | None) -> Blocks:
    return picture_blocks(*named_files(root, wanted, labels, IMAGES), wanted)


def named_files(root: Path, wanted: Wanted, labels: Path | None, kind: Files) -> tuple[list[Path], list[Path], Names]:
    """Files to predict on, what they are called, and their labels.

    Without a file of labels the name of a class's folder is a label.
    """
    labels = find_labels(root, labels)
    found = {} if labels is None else labelled_files(root, labels, "file", wanted.label_column, kind)
    files = files_under(root, kind, found)
    names = [f.relative_to(root) for f in files]
    if labels is not None:
        texts = [found.get(f, "") for f in files]
    else:
        texts = [n.parts[0] if len(n.parts) > 1 and n.parts[0] in wanted.class_names else "" for n in names]
    return files, names, names_of_texts(texts, wanted.class_names)


def find_labels(root: Path, labels: Path | None) -> Path | None:
    return root / LABELS if labels is None and (root / LABELS).is_file() else labels


def _by_class(root: Path, kind: Files, options: Options) -> Pool:
    folders = {f.name: f for f in visible(root) if f.is_dir() and not _only_runs(f)}
    loose = files_among(visible(root), kind)
    test_root = folders.get("test")
    if test_root is not None and any(f.is_dir() for f in visible(test_root)):
        del folders["test"]
    else:
        test_root = None
    without = [folders.pop(name) for name in list(folders) if name.lower() in UNLABELLED]
    if loose or not folders:
        raise FolderError(
            f"{root}: expected a folder per class with {kind.noun}s in it, "
            + (f"found {shown(loose[0].name)} beside them" if loose else "found none")
            + f"; label {kind.noun}s that lie loose with a CSV of file,label (--labels, or {LABELS} in the folder)"
        )
    for folder in (f for f in folders.values() if f.name.lower() in PARTS):
        inside = visible(folder)
        if any(f.is_dir() for f in inside) and not any(f.suffix.lower() in kind.suffixes for f in inside):
            raise FolderError(f"{folder} holds folders, as if of classes; name it as the data, and not {root}")
    for folder in folders.values():
        check_name(folder)
    names = tuple(sorted(folders))
    check_unlike(str(root), names)
    files, labels = _labelled(folders, names, kind)
    for folder in without:
        more = files_in(folder, kind)
        files += more
        labels += [MISSING] * len(more)
    return _pool(root, kind, options, files, np.array(labels, dtype=np.int64), names, _test(test_root, names, kind))


def _only_runs(folder: Path) -> bool:
    """Whether it is where `cadr train .` has put its runs: no class, or the first run would be the last on such data.

    A run that is only just begun has a lock and nothing else.
    """
    if any(f.suffix.lower() in EXAMPLES.suffixes for f in visible(folder)):  # most classes, and spares a walk
        return False
    return not files_in(folder, EXAMPLES) and any(any(folder.rglob(name)) for name in ("config.toml", ".lock"))


def _pool(
    root: Path,
    kind: Files,
    options: Options,
    files: list[Path],
    labels: NDArray[np.int64],
    names: tuple[str, ...],
    test: tuple[list[Path], list[int]] = ([], []),
) -> Pool:
    everything = [*files, *test[0]]  # together, so that all which cannot be read are named at once
    embedded: Embedded | None = None
    examples: NDArray[Any]
    if options.features is not None:
        raw = PictureFiles(tuple(everything)) if kind is IMAGES else read_texts(everything)
        (examples,), embedded = embed_pool(options.features, raw)
        embedded = replace(embedded, raw=raw[: len(files)])
    elif kind is IMAGES:
        examples = decode_all(everything, options.image_size)
    else:
        raise FolderError(f"{root} holds texts, which need a pretrained model: {ADVICE}")
    return Pool(
        examples=examples[: len(files)],
        labels=labels,
        class_names=names,
        name=real_path(root).name,
        test_examples=examples[len(files) :] if test[0] else None,
        test_labels=np.array(test[1], dtype=np.int64) if test[0] else None,
        identifiers=tuple(f.relative_to(root).as_posix() for f in files),
        embedded=embedded,
    )


def files_under(root: Path, kind: Files = IMAGES, named: Iterable[Path] = ()) -> list[Path]:
    """Files anywhere under a folder, in order of name: those that are named, and all that are not hidden."""
    if not (found := {*files_in(root, kind), *named}):
        raise FolderError(f"{root}: there are no {kind.noun}s ({kind.kinds})")
    return sorted(found, key=str)


def labelled_files(
    root: Path, labels: Path, file_column: str, label_column: str, kind: Files = IMAGES
) -> dict[Path, str]:
    """Files under `root` and what a CSV or an annotation tool's export says about them.

    Each must be there, and have one label, however often.
    """
    readable = kind.suffixes | kind.foreign  # what cannot be read is named later, all of it together
    if labels.suffix.lower() in label_exports.SUFFIXES:
        found_there = label_exports.annotated_files(root, labels, lambda: files_in(root, kind))
        if other := next((path for path in found_there if path.suffix.lower() not in readable), None):
            raise FolderError(f"{labels}: {shown(other)} is not {kind.article} {kind.noun} ({kind.kinds})")
        return found_there
    header, rows = read_csv(labels)
    file_at = column(labels, header, file_column, any_case=True)
    label_at = column(labels, header, label_column, LABEL_HINT, any_case=True)
    found: dict[Path, tuple[str, int]] = {}  # what each is labelled, and in which line
    unlike: list[str] = []  # in words
    lacking: dict[str, int] = {}  # lines, by the name of the file that is not there
    for line, row in rows:
        name = as_there(root, row[file_at])
        relative = PurePosixPath(name)
        if not name or relative.is_absolute() or ".." in relative.parts:
            raise FolderError(f"{labels}, line {line}: expected a name relative to {root}, got {name!r}")
        path = root / relative
        if not path.is_file():
            lacking[name] = line
        elif path.suffix.lower() not in readable:
            raise FolderError(f"{labels}, line {line}: {name!r} is not {kind.article} {kind.noun} ({kind.kinds})")
        label = row[label_at].strip()
        before, first = found.setdefault(path, (label, line))
        if label_spelling(before) != label_spelling(label):
            unlike.append(f"{name!r} is labelled {before!r} in line {first} and {label!r} in line {line}")
    if unlike:
        more = f" (and so in {counted(len(unlike) - 1, 'more line')})" if len(unlike) > 1 else ""
        raise FolderError(f"{labels}: {unlike[0]}{more}; keep one line for each file")
    _check_there(root, labels, lacking, len(found))
    return {path: label for path, (label, _) in found.items()}


def _check_there(root: Path, labels: Path, lacking: dict[str, int], named: int) -> None:
    """Name the files that are not there, as after broken pictures were taken away, in one go."""
    if len(lacking) == 1:
        ((name, line),) = lacking.items()
        raise FolderError(f"{labels}, line {line}: {name!r} is not in {root}; give names relative to that folder")
    if lacking:
        raise FolderError(
            f"{labels}: {len(lacking):,} of the {named:,} files that it names are not in {root}: {listed([*lacking])}; "
            "give names relative to that folder, or take their lines away"
        )


def _labelled(folders: dict[str, Path], names: tuple[str, ...], kind: Files) -> tuple[list[Path], list[int]]:
    files: list[Path] = []
    labels: list[int] = []
    for name in sorted(folders):
        found = files_in(folders[name], kind)
        if not found:
            raise FolderError(f"no example has class {name!r}: {folders[name]} has no {kind.noun}s ({kind.kinds})")
        files += found
        labels += [names.index(name)] * len(found)
    return files, labels


def _test(root: Path | None, names: tuple[str, ...], kind: Files) -> tuple[list[Path], list[int]]:
    if root is None:
        return [], []
    folders = {f.name: f for f in visible(root) if f.is_dir()}
    unknown = sorted(set(folders) - set(names))
    if unknown:
        raise FolderError(f"{root} has a class {unknown[0]!r} that is not among the training folders")
    return _labelled(folders, names, kind)
