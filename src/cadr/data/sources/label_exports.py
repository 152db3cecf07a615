"""Labels as annotation tools export them: Label Studio's JSON and JSON-MIN, and CVAT's XML for images.

One label for each file or row, wherever a person gave one. A model's predictions are no labels: Label Studio keeps them
apart, CVAT marks them with a source that is not `manual`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.parsers import expat

from cadr.errors import DataError
from cadr.utils.files import as_there, check_kind
from cadr.utils.text import listed, reason, shown
from cadr.utils.untrusted import parse_json

SUFFIXES = (".json", ".xml")
LARGEST = 1 << 30  # bytes
_UPLOADED = re.compile(r"/data/upload/(?:.*/)?[0-9a-f]{8}-([^/]+)")  # Label Studio puts 8 digits before a file's name
_FILES = ("file", "image", "img", "picture", "photo", "text_file")  # keys of a task that may name a file
_WHERE = ("row", "check")  # what `cadr export-tasks` adds to a task that is no file
_MANUAL = "manual"


class AnnotationError(DataError):
    """An annotation tool's export cannot be understood."""


class Annotation(NamedTuple):
    """What a person said of one example, which goes by a file's name or by a row's number."""

    where: str  # in the export, for a sentence
    label: str
    file: str | None = None
    uploaded: bool = False  # Label Studio has changed its name: blanks are underscores, and brackets are gone
    row: int | None = None
    check: str | None = None  # a digest of the row


def read_annotations(path: Path) -> list[Annotation]:
    """Every label in an export; what has none is not in the list."""
    check_kind(path)
    try:
        if path.stat().st_size > LARGEST:
            raise AnnotationError(f"{path} is larger than {LARGEST >> 30} GiB, which no export of labels is")
        content = path.read_bytes()
    except OSError as error:
        raise AnnotationError(f"cannot read {path}: {error.strerror}") from error
    found = list(_cvat(path, content) if path.suffix.lower() == ".xml" else _label_studio(path, content))
    if not found:
        raise AnnotationError(f"{path} holds no label that a person gave; annotate some, and export again")
    return found


def _label_studio(path: Path, content: bytes) -> Iterator[Annotation]:
    try:
        tasks = parse_json(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise AnnotationError(
            f"{path} is not UTF-8 (byte {error.object[error.start]:#04x}); export it again"
        ) from error
    except (ValueError, RecursionError) as error:
        raise AnnotationError(f"{path} is no JSON: {reason(error)}") from error
    if not isinstance(tasks, list):
        raise AnnotationError(f"{path}: expected a list of tasks, as Label Studio exports, got {_kind(tasks)}")
    for number, task in enumerate(tasks):
        where = f"{path}, task {number}"
        if not isinstance(task, dict):
            raise AnnotationError(f"{where}: expected a task, got {_kind(task)}")
        if isinstance(task.get("id"), int):
            where += f" (id {task['id']})"
        label = _of_task(where, task) if "data" in task else _of_minimal(where, task)
        if label:
            yield _placed(where, label, task.get("data", task))


def _of_task(where: str, task: dict[str, Any]) -> str:
    """The label of a task; blank where nobody gave one, or somebody skipped it."""
    if not isinstance(task["data"], dict):
        raise AnnotationError(f"{where}: data should be an object, got {_kind(task['data'])}")
    given = task.get("annotations", task.get("completions"))  # as they were called before version 1
    if given is None:
        raise AnnotationError(f"{where} has no annotations: export as JSON, not the tasks that were imported")
    if not isinstance(given, list):
        raise AnnotationError(f"{where}: annotations should be a list, got {_kind(given)}")
    labels: dict[str, bool] = {}
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("result", []), list):
            raise AnnotationError(f"{where}: an annotation should be an object with a list of results")
        if not one.get("was_cancelled") and not one.get("skipped"):
            label = _chosen(where, one.get("result", []))
            labels[label] = labels.get(label, False) or bool(one.get("ground_truth"))
    labels.pop("", None)
    return _agreed(where, [label for label, truth in labels.items() if truth] or list(labels))


def _chosen(where: str, results: list[Any]) -> str:
    labels, others = [], []
    for one in results:
        if not isinstance(one, dict) or not isinstance(one.get("value", {}), dict):
            raise AnnotationError(f"{where}: a result should be an object with a value")
        kind = one.get("type")
        if kind == "choices":
            labels += _choices(where, one.get("value", {}).get("choices"))
        elif kind not in (None, "textarea", "rating", "number", "datetime", "relation"):
            others.append(str(kind))
    if others and not labels:
        raise AnnotationError(f"{where}: expected one of several choices as the label, got {others[0]!r}")
    return _agreed(where, list(dict.fromkeys(labels)))


def _choices(where: str, value: Any) -> list[str]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise AnnotationError(f"{where}: choices should be a list of words, got {_kind(value)}")
    return [one.strip() for one in value]


def _of_minimal(where: str, task: dict[str, Any]) -> str:
    """JSON-MIN: the data of a task and the values of its controls beside each other. Ours is called `label`."""
    names = [name for name in ("label", "choice", "choices", "class") if name in task]
    if not names:
        if not {"annotator", "annotation_id", "lead_time"} & set(task):
            raise AnnotationError(f"{where} has neither data nor a label; expected what Label Studio exports as JSON")
        return ""  # nobody chose
    value = task[names[0]]
    if isinstance(value, dict):
        value = value.get("choices")
    return _agreed(where, list(dict.fromkeys(_choices(where, value)))) if value is not None else ""


def _agreed(where: str, labels: list[str]) -> str:
    if len(labels) > 1:
        raise AnnotationError(f"{where} is labelled {labels[0]!r} and {labels[1]!r}; keep one of them")
    return labels[0] if labels else ""


def _placed(where: str, label: str, data: dict[str, Any]) -> Annotation:
    row, check = (data.get(name) for name in _WHERE)
    if row is not None:
        if isinstance(row, bool) or not isinstance(row, int) or row < 0 or not isinstance(check, str | None):
            raise AnnotationError(f"{where}: row should be a number from 0 and check a word, got {row!r} and {check!r}")
        return Annotation(where, label, row=row, check=check)
    for name in _FILES:
        value = data.get(name)
        if isinstance(value, str) and value:
            if name == "file":
                return Annotation(where, label, file=value)
            return Annotation(where, label, *_named(where, value))
    raise AnnotationError(
        f"{where} names no file (keys {', '.join(map(repr, list(data)[:8])) or 'none'}); tasks that cadr export-tasks "
        "writes do, and those whose data have a key `image`"
    )


def _named(where: str, address: str) -> tuple[str, bool]:
    """A file's name, or the end of it, from the address under which Label Studio shows it; whether it was renamed."""
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise AnnotationError(f"{where}: {address!r} is no address of a file ({error})") from error
    uploaded = _UPLOADED.search(parts.path)
    if uploaded:
        return unquote(uploaded[1]), True
    if parts.path.endswith("/local-files/"):
        below = parse_qs(parts.query).get("d", [""])[0]
        if not below:
            raise AnnotationError(f"{where}: {address!r} names no file")
        return below, False
    return (unquote(parts.path) if parts.scheme or address.startswith("/") else address), False


def _cvat(path: Path, content: bytes) -> Iterator[Annotation]:
    root = _parsed(path, content)
    if root.tag != "annotations":
        raise AnnotationError(f"{path}: expected <annotations>, as CVAT exports for images, got <{root.tag[:40]}>")
    if root.find("track") is not None:
        raise AnnotationError(f"{path} is of a video; export it as CVAT for images")
    for number, image in enumerate(root.iter("image")):
        name = image.get("name")
        if not name:
            raise AnnotationError(f"{path}, image {number} has no name")
        where = f"{path}, image {number} ({name!r})"
        labels = []
        for tag in image:
            if tag.tag != "tag":
                if tag.tag in ("box", "polygon", "polyline", "points", "mask", "cuboid", "ellipse", "skeleton"):
                    raise AnnotationError(
                        f"{where} holds a {tag.tag}; expected one tag as the label of the whole picture"
                    )
                continue
            label = (tag.get("label") or "").strip()
            if not label:
                raise AnnotationError(f"{where}: a tag has no label")
            if tag.get("source", _MANUAL) == _MANUAL:  # what nobody has confirmed is a guess of ours
                labels.append(label)
        label = _agreed(where, list(dict.fromkeys(labels)))
        if label:
            yield Annotation(where, label, file=name)


def _parsed(path: Path, content: bytes) -> ElementTree.Element:
    """An XML tree; a document type, with which a small file can ask for any amount of memory, is refused."""
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: Any) -> None:
        raise AnnotationError(f"{path} declares a document type, which no export of CVAT does")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, attributes: builder.start(tag, attributes)
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise AnnotationError(f"{path} is no XML that can be read: {reason(error)}") from error
    except (ValueError, LookupError) as error:  # of an encoding that nobody knows
        raise AnnotationError(f"{path} is in an encoding that cannot be read: {reason(error)}") from error
    return builder.close()


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a word", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def annotated_files(root: Path, path: Path, files: Callable[[], Iterable[Path]]) -> dict[Path, str]:
    """Files under `root` and the labels that an export gives them; `files` are those that there are.

    A tool may know a file by a longer name, from a folder above, or, where it was uploaded, by its bare name.
    """
    found: dict[Path, Annotation] = {}
    lacking: list[str] = []
    bare: dict[str, list[Path]] = {}
    for one in read_annotations(path):
        if one.file is None:
            raise AnnotationError(f"{one.where} is of row {one.row} of a table, but {root} is a folder of files")
        if one.uploaded and not bare:
            for file in files():
                bare.setdefault(_upload_name(file.name), []).append(file)
        there = bare.get(_upload_name(one.file), []) if one.uploaded else _below(root, one.file)
        if len(there) > 1:
            raise AnnotationError(
                f"{one.where}: {one.file!r} may be {shown(there[0])} or {shown(there[1])}; import tasks that cadr "
                "export-tasks writes, which keep the folder"
            )
        if not there:
            lacking.append(one.file)
            continue
        before = found.setdefault(there[0], one)
        if before.label != one.label:
            raise AnnotationError(
                f"{one.where}: {one.file!r} is labelled {one.label!r}, and {before.label!r} before; keep one of them"
            )
    if lacking:
        raise AnnotationError(
            f"{path}: {len(lacking):,} of the {len(found) + len(lacking):,} files that it labels are not in {root}: "
            f"{listed(list(dict.fromkeys(lacking)))}; delete their tasks, or name the folder that was annotated"
        )
    return {file: one.label for file, one in found.items()}


def _below(root: Path, name: str) -> list[Path]:
    """The file by its whole name, or else by as much of its end as leads to one."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        return []
    for start in range(len(parts)):
        there = root / as_there(root, "/".join(parts[start:]))
        if there.is_file():
            return [there]
    return []


def _upload_name(name: str) -> str:
    """As Django, which Label Studio is built on, names a file that is uploaded."""
    composed = unicodedata.normalize("NFC", name)
    return re.sub(r"[^-\w.]", "", composed.strip().replace(" ", "_"))
