"""A stranger's path: a folder of pictures, a CSV of some labels, and every command as its --help explains it.

The stranger has not read the code: each command is run as a program of its own, and the flags used must stand in the
help that the program prints.
"""

import csv
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from cadr import open_data

PICTURES = 400
LABELS = [15, 12, 9, 7, 5, 4, 3, 2, 2, 1]  # of each digit: 60 in all, the first ones labelled most


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """400 small PNG files and labels.csv with 60 labels; beside them the truth, which the stranger does not have."""
    folder = tmp_path_factory.mktemp("stranger")
    digits = open_data("digits")
    (folder / "photos").mkdir()
    left, truth = list(LABELS), {}
    with (folder / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "label"])
        for i in range(PICTURES):
            name, c = f"scan {i:03}.png", int(digits.labels[i])
            Image.fromarray(digits.examples[i]).convert("L").save(folder / "photos" / name)
            truth[name] = f"digit {c}"
            if left[c]:
                left[c] -= 1
                table.writerow([name, f"digit {c}"])
    (folder / "truth.json").write_text(json.dumps(truth))
    return folder


def cadr(folder, command):
    """Run a command as its own process; its flags must be in its help."""
    arguments = shlex.split(command)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    program = [sys.executable, "-m", "cadr"]
    asked = subprocess.run([*program, arguments[0], "--help"], env=environment, capture_output=True, text=True)
    assert asked.returncode == 0
    for flag in re.findall(r"(--[a-z-]+)", command):
        assert flag in asked.stdout, f"cadr {arguments[0]} --help does not mention {flag}"
    done = subprocess.run([*program, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trained(desk):
    return desk, cadr(desk, "train photos --labels labels.csv --out run")


def test_diagnose(desk):
    text = cadr(desk, "diagnose photos --labels labels.csv")
    assert text.startswith("Labels are NOT missing at random")
    assert all(f"digit {c}" in text for c in range(10))
    content = json.loads(cadr(desk, "diagnose photos --labels labels.csv --json"))
    assert [c["labels"] for c in content["classes"]] == LABELS


def test_train(trained):
    _, text = trained
    assert "Accuracy" in text
    assert "held-out labels" in text


def test_predict(trained):
    desk, _ = trained
    cadr(desk, "predict run photos --out predictions.csv")
    with (desk / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    truth = json.loads((desk / "truth.json").read_text())
    assert [row["file"] for row in rows] == sorted(truth)
    assert all(0.1 <= float(row["probability"]) <= 1 for row in rows)
    right = np.mean([row["predicted"] == truth[row["file"]] for row in rows])
    assert right > 0.6  # the 60 labels alone are 15 % of the rows


def test_report(trained):
    desk, _ = trained
    cadr(desk, "report run --out report.html")
    page = (desk / "report.html").read_text()
    assert "Labels are NOT missing at random" in page
    assert "digit 9" in page
    assert page.count("data:image/png;base64,") >= 12
    assert "scan " in page


def test_export(trained):
    """What is exported, fed with the stranger's own files, says what `cadr predict` wrote."""
    desk, _ = trained
    cadr(desk, "export run --out exported")
    assert (desk / "exported" / "model.safetensors").stat().st_size > 1000
    described = json.loads((desk / "exported" / "model.json").read_text())
    names = [f"digit {c}" for c in range(10)]
    assert names == described["classes"]
    assert "digit 9" in (desk / "exported" / "MODEL_CARD.md").read_text()
    cadr(desk, "predict run photos --out again.csv")
    with (desk / "again.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    images = [np.asarray(Image.open(desk / "photos" / row["file"]).convert("RGB")) for row in rows]
    model = torch.export.load(desk / "exported" / "model.pt2").module()
    probabilities = model(torch.from_numpy(np.stack(images)))
    best, index = probabilities.max(1)
    assert [names[int(i)] for i in index] == [row["predicted"] for row in rows]
    np.testing.assert_allclose(best.detach().numpy(), [float(row["probability"]) for row in rows], atol=2e-6)
