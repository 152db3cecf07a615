"""No command decodes a picture, reads a table or diagnoses labels twice: what is found is handed on."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from PIL import Image

import cadr
import cadr.data.sources.images
import cadr.data.sources.registry
import cadr.diagnosis.diagnose
from cadr.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")  # of runs as short as these
SHORT = ["--steps", "6", "--batch", "4", "--ratio", "1", "--device", "cpu"]
LABELS = (14, 6, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """48 pictures of three colours, half of them labelled, and two runs on them."""
    folder = tmp_path_factory.mktemp("once")
    random, left, lines = np.random.default_rng(0), list(LABELS), ["file,label"]
    (folder / "photos").mkdir()
    for i in range(48):
        c = i % 3
        pixels = random.integers(0, 80, (10, 10, 3)) + 80 * np.eye(3, dtype=np.int64)[c]
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "photos" / f"{i:02}.png")
        if left[c]:
            left[c] -= 1
            lines.append(f"{i:02}.png,{'abc'[c]}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    data = [str(folder / "photos"), "--labels", str(folder / "labels.csv")]
    for name in ("first", "second"):
        assert main(["train", *data, *SHORT, "--seed", str(len(name)), "--out", str(folder / name)]) == 0
    return folder


@pytest.fixture
def counted(monkeypatch):
    """How often each picture has been decoded, and how often labels have been diagnosed (under the key None)."""
    counts = Counter[str | None]()
    decode, diagnose = cadr.data.sources.images.decode, cadr.diagnosis.diagnose._diagnose

    def counting_decode(path, *size):
        counts[path.name] += 1
        return decode(path, *size)

    def counting_diagnose(*given):
        counts[None] += 1
        return diagnose(*given)

    monkeypatch.setattr("cadr.data.sources.images.decode", counting_decode)
    monkeypatch.setattr("cadr.diagnosis.diagnose._diagnose", counting_diagnose)
    return counts


@pytest.mark.parametrize(
    ("command", "diagnoses"),
    [
        ("diagnose photos --labels labels.csv", 1),
        ("train photos --labels labels.csv --out third " + " ".join(SHORT), 1),
        ("compare photos --labels labels.csv --seeds 2 --out compared " + " ".join(SHORT), 1),
        ("evaluate first", 1),
        ("predict first photos --out predictions.csv", 0),
        ("report first --out one.html", 1),
        ("report first second --out two.html", 1),
        ("export-tasks first --to label-studio --out tasks.json", 0),
    ],
)
def test_a_command_decodes_a_picture_and_diagnoses_labels_once(command, diagnoses, folder, counted, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(command.split()) == 0
    found = counted.pop(None, 0)
    assert set(counted.values()) == {1}
    assert len(counted) == 48
    assert found == diagnoses


def test_a_run_in_python_decodes_once_whatever_is_asked_of_it(folder, counted, tmp_path):
    data = folder / "photos"
    settings: dict[str, Any] = {"steps": 6, "batch": 4, "ratio": 1, "device": "cpu"}
    run = cadr.train(data, labels=folder / "labels.csv", out=tmp_path / "run", quiet=True, **settings)
    run.evaluate()
    page = run.report(tmp_path / "page.html").read_text()
    run.summary()
    assert run.diagnosis is not None
    assert run.diagnosis.labelled == sum(LABELS)
    assert set(counted.values()) == {1}
    assert len(counted) == 49  # with the diagnosis
    assert main(["report", str(run.path), "--out", str(tmp_path / "again.html")]) == 0  # with a diagnosis of its own
    assert (tmp_path / "again.html").read_text() == page.replace("page.html", "again.html")
