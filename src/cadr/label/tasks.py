"""Tasks for Label Studio and CVAT: what is worth labelling, with the model's guesses and how sure it is of them.

Their own file formats, in which `--labels` also takes back what they export. A guess is marked as one, so that nothing
that nobody has confirmed comes back as a label.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from cadr.data.sources.images import FOREIGN, SUFFIXES
from cadr.data.sources.more_labels import CHECK, ROW, checks
from cadr.errors import ConfigError
from cadr.inference.overwrite_guard import check_not_overwritten
from cadr.label import MOST, ROWS
from cadr.label.display import Display
from cadr.label.opened import OpenedRun, open_run
from cadr.report.query import worth_labelling
from cadr.utils.files import atomic_write, expand_home, real_path

LABEL, EXAMPLE = "label", "example"  # the names of the control and of what it is for
_GUESSES = 3  # that are shown beside the example


def write_tasks(
    run: Path, to: str, out: Path, most: int = MOST, rows: int = ROWS, images: str | None = None, device: str = "auto"
) -> list[Path]:
    """Write at most so many tasks about the run in folder `run`; returns the files, of which the first is `out`.

    `images` is what stands before the name of a picture in its address; by default Label Studio's own for local files.
    """
    if to not in FORMATS:
        raise ConfigError(f"There is no format {to!r}; there are {', '.join(FORMATS)}.")
    if most < 1:
        raise ConfigError(f"most must be at least 1, got {most}")
    opened = open_run(run, rows, device)
    places = worth_labelling(opened.probabilities, opened.pool, opened.rows, most)
    display = Display(opened.config, opened.pool, opened.rows[places])
    contents = FORMATS[to](_Tasks(opened, display, places.tolist(), out, images))
    check_not_overwritten(opened.config, opened.run, *contents)
    for path in contents:
        if path.is_dir() or (path.is_file() and path.stat().st_size):
            raise ConfigError(f"{path} is there already, and may hold labels that people gave; name another file")
    for path, content in contents.items():
        with atomic_write(path) as new:
            new.write_bytes(content)
    return list(contents)


class _Tasks:
    """The examples in question."""

    def __init__(self, opened: OpenedRun, display: Display, places: list[int], out: Path, images: str | None) -> None:
        self.opened, self.display, self.places, self.out, self.images = opened, display, places, out, images
        self.data = expand_home(opened.config.data)

    def row(self, place: int) -> int:
        return int(self.opened.rows[place])

    def file(self, row: int) -> str | None:
        """Its name below the data's folder."""
        names = self.opened.pool.identifiers
        return names[row] if self.data.is_dir() and names is not None else None

    def guesses(self, place: int) -> list[tuple[str, float]]:
        p = self.opened.probabilities[place]
        return [(self.opened.class_names[c], float(p[c])) for c in np.argsort(-p, kind="stable")[:_GUESSES]]


def _label_studio(tasks: _Tasks) -> dict[Path, bytes]:
    """A list of tasks, and the interface to label them with."""
    digests: dict[int, str] = {}
    wanted = [tasks.row(place) for place in tasks.places]
    if not tasks.data.is_dir():
        digests = checks(tasks.data, tasks.opened.pool, tasks.opened.config.source.label_column)(wanted)
    content = [_label_studio_task(tasks, place, digests) for place in tasks.places]
    kind = next(name for name in ("image", "text", "table") if name in content[0]["data"])
    text = json.dumps(content, ensure_ascii=True, indent=1) + "\n"
    return {tasks.out: text.encode(), tasks.out.with_suffix(".config.xml"): _interface(tasks, kind)}


def _label_studio_task(tasks: _Tasks, place: int, digests: dict[int, str]) -> dict[str, Any]:
    row, guesses = tasks.row(place), tasks.guesses(place)
    shown, file = tasks.display.shown(row), tasks.file(row)
    data: dict[str, Any] = {"name": shown.name} | ({ROW: row, CHECK: digests[row]} if file is None else {"file": file})
    if shown.picture and file is not None:
        before = f"/data/local-files/?d={quote(real_path(tasks.data).name)}/" if tasks.images is None else tasks.images
        data["image"] = before + quote(file)
    elif shown.picture:
        kind, picture = tasks.display.picture(row)
        data["image"] = f"data:{kind};base64,{base64.b64encode(picture).decode()}"
    elif shown.text is not None:
        data["text"] = shown.text
    else:
        data["table"] = dict(shown.cells)
    data["guesses"] = ", ".join(f"{name} {100 * p:.0f} %" for name, p in guesses)
    (best, score), *_ = guesses
    result = {"from_name": LABEL, "to_name": EXAMPLE, "type": "choices", "value": {"choices": [best]}, "score": score}
    prediction = {"model_version": f"cadr {tasks.opened.run.name}", "score": score, "result": [result]}
    return {"data": data, "predictions": [prediction]}


def _interface(tasks: _Tasks, kind: str) -> bytes:
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Header", value="$name")
    ElementTree.SubElement(
        view, {"image": "Image", "text": "Text", "table": "Table"}[kind], name=EXAMPLE, value=f"${kind}"
    )
    ElementTree.SubElement(view, "Header", value="$guesses", size="5")
    control = {"name": LABEL, "toName": EXAMPLE, "choice": "single", "showInLine": "true"}
    choices = ElementTree.SubElement(view, "Choices", control)
    for name in tasks.opened.choices:
        ElementTree.SubElement(choices, "Choice", value=name)
    return _xml(view)


def _cvat(tasks: _Tasks) -> dict[Path, bytes]:
    """Annotations with the guesses as tags, the labels that a task needs, and the files to make it of."""
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    files = {tasks.file(tasks.row(place)): place for place in tasks.places}
    if None in files or any(Path(str(name)).suffix.lower() not in SUFFIXES | FOREIGN for name in files):
        raise ConfigError("CVAT takes files of pictures; for other data use --to label-studio")
    for number, name in enumerate(sorted(map(str, files))):  # in the order in which CVAT numbers them
        with Image.open(tasks.data / name) as image:
            width, height = image.size
        attributes = {"id": str(number), "name": name, "width": str(width), "height": str(height)}
        element = ElementTree.SubElement(root, "image", attributes)
        (best, score), *_ = tasks.guesses(files[name])
        tag = ElementTree.SubElement(element, "tag", label=best, source="auto")
        ElementTree.SubElement(tag, "attribute", name="probability").text = f"{score:.4f}"
    probability = {"name": "probability", "mutable": False, "input_type": "text", "default_value": "", "values": [""]}
    labels = [{"name": name, "type": "tag", "attributes": [probability]} for name in tasks.opened.choices]
    return {
        tasks.out: b'<?xml version="1.0" encoding="utf-8"?>\n' + _xml(root),
        tasks.out.with_suffix(".labels.json"): json.dumps(labels, indent=1).encode() + b"\n",
        tasks.out.with_suffix(".files.txt"): "".join(f"{name}\n" for name in sorted(map(str, files))).encode(),
    }


def _xml(root: ElementTree.Element) -> bytes:
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode").encode() + b"\n"


FORMATS: dict[str, Callable[[_Tasks], dict[Path, bytes]]] = {"label-studio": _label_studio, "cvat": _cvat}
