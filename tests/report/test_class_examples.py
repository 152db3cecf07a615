"""What the names stand for: whose pictures are shown under which name, and where there is nothing to show."""

from __future__ import annotations

import base64
import dataclasses
import html
import io
import json
import shutil
from typing import Any

import numpy as np
import torch
from PIL import Image

from cadr.cli.main import main
from cadr.data.pool import MISSING, Pool
from cadr.report.examples import CLASSES, LABELLED, PREDICTED, named
from cadr.report.model_outputs import Look, look
from cadr.report.runs import ReportedRun
from cadr.training import checkpoint
from tests.report import own_runs
from tests.training import tiny


def seen(labels: list[int], classes: int, guesses: dict[int, tuple[int, float]], features: bool = False) -> Look:
    """Row i is a picture of the grey i; `guesses` are class and confidence of the unlabelled rows."""
    n = len(labels)
    grey = np.repeat(np.arange(n, dtype=np.uint8), 8 * 8 * 3).reshape(n, 8, 8, 3)
    names = tuple(f"class {c}" for c in range(classes))
    pool = Pool(grey[:, 0, 0].astype(np.float32) if features else grey, np.array(labels), names)
    probabilities = np.zeros((len(guesses), classes))
    for row, (c, sure) in zip(probabilities, guesses.values(), strict=True):
        row[:] = (1 - sure) / (classes - 1)
        row[c] = sure
    rest: Any = {"rows_of_part": None, "on_part": None, "on_part_before": None, "calibration": None}
    labelled = np.flatnonzero(pool.labels != MISSING)
    return Look(
        step=1, pool=pool, part="test", labelled=labelled, unlabelled=np.array(list(guesses), dtype=np.int64),
        num_unlabelled=len(guesses), on_labelled=np.zeros((len(labelled), classes)), on_unlabelled=probabilities,
        propensity=np.ones(classes), **rest,
    )  # fmt: skip


def rows(shown: Any) -> list[int]:
    """Which rows the pictures are of."""
    pixels = [Image.open(io.BytesIO(base64.b64decode(one.picture.split(",")[1]))) for one in shown]
    assert [one.called for one in shown] == [f"row {np.asarray(image)[0, 0, 0]}" for image in pixels]
    return [int(np.asarray(image)[0, 0, 0]) for image in pixels]


def test_labelled_pictures_stand_beside_those_that_are_called_the_same():
    labels = [0, 0, 0, 0, 1, 2, 2] + [MISSING] * 6
    look = seen(labels, 3, {7: (1, 0.5), 8: (2, 0.9), 9: (1, 0.9), 10: (2, 0.6), 11: (2, 0.7), 12: (2, 0.8)})
    found = named(look, ("ant", "bee", "cat"))
    assert [(one.name, one.labels, one.predictions) for one in found] == [("bee", 1, 2), ("cat", 2, 4), ("ant", 4, 0)]
    assert [rows(one.labelled) for one in found] == [[4], [5, 6], [0, 1, 2]]
    assert [rows(one.predicted) for one in found] == [[9], [8, 12], []]  # the surer half, the surest first
    assert len(found[2].labelled) == LABELLED


def test_labels_held_out_are_labels_too_and_are_shown_last():
    """All else on the page counts them; a name is tied by those that were learned, so these come first."""
    look = seen([MISSING, 0, 1, MISSING, MISSING, MISSING], 2, {5: (1, 0.9)})
    pool = dataclasses.replace(
        look.pool, test_examples=look.pool.examples[[0, 3, 4]], test_labels=np.array([0, 1, 0], dtype=np.int64)
    )
    held = dataclasses.replace(look, pool=pool, part="validation", rows_of_part=np.array([0, 3, 4]))
    found = named(held, ("ant", "bee"))
    assert [(one.name, one.labels, rows(one.labelled)) for one in found] == [("bee", 2, [2, 3]), ("ant", 3, [1, 0, 4])]


def test_many_predictions_are_spread_over_their_surer_half():
    unlabelled = {2 + i: (1, 0.99 - i / 200) for i in range(40)}
    bee = named(seen([0, 1] + [MISSING] * 40, 2, unlabelled), ("ant", "bee"))[1]
    assert rows(bee.predicted) == [2, 5, 9, 13, 17, 21]
    assert len(bee.predicted) == PREDICTED


def test_of_many_classes_those_with_the_fewest_labels_are_shown():
    labels = [c for c in range(15) for _ in range(15 - c)] + [MISSING]
    found = named(seen(labels, 15, {len(labels) - 1: (0, 0.9)}), tuple(map(str, range(15))))
    assert [one.name for one in found] == [str(14 - i) for i in range(CLASSES)]


def test_without_pictures_or_without_unlabelled_examples_there_is_nothing_to_show():
    assert named(seen([0, 1, MISSING], 2, {2: (0, 0.9)}, features=True), ("ant", "bee")) == []
    assert named(seen([0, 1], 2, {}), ("ant", "bee")) == []


def test_the_page_shows_it_for_pictures_alone(tmp_path):
    pages = {}
    for make in (own_runs.image_run, own_runs.table_run):
        folder = tmp_path / make.__name__
        folder.mkdir()
        assert main(["report", str(make(folder)), "--out", str(folder / "page.html"), "--device", "cpu"]) == 0
        pages[make] = (folder / "page.html").read_text(encoding="utf-8")
    assert "What the names stand for" not in pages[own_runs.table_run]
    page = pages[own_runs.image_run]
    assert "What the names stand for" in page
    assert page.count(", labelled light") >= 1
    assert "of 24</span>" in page


def test_the_page_says_which_names_seem_exchanged(tmp_path):
    """Of a run whose last layer has two of its rows exchanged, and of the same run as it was."""
    run = own_runs.table_run(tmp_path)
    right = tmp_path / "right"
    shutil.copytree(run, right)
    tensors, facts = checkpoint.load(run / checkpoint.CURRENT)
    rows = [
        name for name, tensor in tensors.items() if name.startswith("average.") and len(tensor) == len(own_runs.NAMES)
    ]
    assert len(rows) == 2  # weights and biases
    tensors |= {name: tensors[name][[0, 2, 1]] for name in rows}
    checkpoint.save(run, tensors, facts)
    assert main(["report", str(run), str(right), "--out", str(tmp_path / "page.html"), "--device", "cpu"]) == 0
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.count("these classes seem to have swapped labels") == 1
    assert 'In run these classes seem to have swapped labels: birch, white and oak "royal".' in page


def test_the_page_says_what_was_exchanged_in_training(tmp_path):
    run = own_runs.table_run(tmp_path)
    record = {"kind": "renaming", "step": 30, "exchanged": [["ash", "oak"]], "message": "Ash & oak were exchanged."}
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    assert main(["report", str(run), "--out", str(tmp_path / "page.html"), "--device", "cpu"]) == 0
    assert "Ash &amp; oak were exchanged." in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_network_of_ones_own_is_not_asked(tmp_path):
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = torch.nn.Linear(4, 3)

        def forward(self, x):
            return self.last(x)

    tiny.finish(tiny.config(), tmp_path / "run", model=Own())
    assert look(ReportedRun.read(tmp_path / "run", "run", 0), tiny.pool(), Own(), "cpu", 100).exchanged == []


def test_where_everything_is_labelled_nothing_surrounds_the_labels(tmp_path):
    pool = dataclasses.replace(tiny.pool(), labels=np.arange(90) % 3)
    tiny.finish(tiny.config(), tmp_path / "run", pool=pool)
    seen = look(ReportedRun.read(tmp_path / "run", "run", 0), pool, None, "cpu", 100)
    assert (len(seen.unlabelled), seen.exchanged) == (0, [])
