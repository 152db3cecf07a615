"""Runs on pictures and texts through a pretrained model: trained, asked, shown, exported, and found again elsewhere."""

import csv
import json
import re
import shutil
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import cadr
from cadr.cli.main import main
from cadr.embedding.registry import Pretrained
from cadr.errors import CheckpointError, DataError
from cadr.inference.export import export_run
from cadr.inference.predictor import Predictor

SETTINGS: dict[str, Any] = {"steps": 30, "evaluations": 2, "quiet": True}


@pytest.fixture(autouse=True)
def unbothered():
    """So few steps teach nothing, of which there are warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cadr.CadrWarning)
        yield


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Red and blue ones of many sizes, in a folder with labels.csv; of the blue ones few are labelled."""
    folder = tmp_path_factory.mktemp("data") / "photos"
    folder.mkdir()
    random, rows = np.random.default_rng(0), ["file,label"]
    for n in range(40):
        pixels = random.integers(0, 120, (18 + n % 5, 20 + n % 3, 3))
        pixels[..., 2 * (n % 2)] += 130
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{n:02}.png")
        if n % 3 == 0 or n % 8 == 1:
            rows.append(f"{n:02}.png,{['red', 'blue'][n % 2]}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(photos, vit, tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cadr.CadrWarning)
        out = tmp_path_factory.mktemp("runs") / "photos"
        return cadr.train(photos, features=str(vit), out=out, **SETTINGS)


def test_raw_pictures_go_in(run, photos, tmp_path, capsys):
    assert main(["predict", str(run.path), str(photos), "--out", str(tmp_path / "p.csv")]) == 0
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows[:2]] == ["00.png", "01.png"]
    paths = [photos / row["file"] for row in rows]
    np.testing.assert_array_equal(run.predict(paths), [row["predicted"] for row in rows])
    np.testing.assert_allclose(run.predict_proba(photos).max(1), [float(row["probability"]) for row in rows], atol=1e-4)


def test_it_is_continued_and_evaluated_from_where_the_data_are(run, photos):
    assert 0 <= cadr.load(run.path).evaluate()["accuracy"] <= 100
    again = cadr.train(photos, features=run.config.source.features, out=run.path, **SETTINGS)
    assert again.result == run.result
    with pytest.raises(cadr.CadrError, match="features"):
        cadr.train(photos, image_size=16, out=run.path, **SETTINGS)


def test_the_report_shows_the_photographs(run, tmp_path):
    page = run.report(tmp_path / "report.html", to_label=tmp_path / "label.csv").read_text(encoding="utf-8")
    assert len(re.findall(r'<img src="data:image/png', page)) > 10
    assert (tmp_path / "label.csv").read_text().startswith("file,label,guess")


def test_the_exported_program_has_the_backbone_inside(run, vit, photos, tmp_path):
    export_run(run.path, tmp_path, ("safetensors", "torch"))
    extra = {"input.json": "", "classes.json": ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=extra).module()
    facts = json.loads(extra["input.json"])
    assert (facts["shape"], facts["dtype"], facts["pretrained"]["inside"]) == ([16, 16, 3], "uint8", True)
    paths = [photos / f"{n:02}.png" for n in range(5)]
    encoder = Pretrained.find(str(vit)).load("pictures")
    fitted = np.stack([encoder.fit(np.asarray(Image.open(path))) for path in paths])
    found = program(torch.from_numpy(fitted))
    np.testing.assert_allclose(found.detach().numpy(), run.predict_proba(paths), atol=1e-4)
    outside = json.loads((tmp_path / "model.json").read_text())["input"]
    assert (outside["shape"], outside["pretrained"]["inside"]) == ([12], False)
    assert "which makes features of them, is inside" in (tmp_path / "MODEL_CARD.md").read_text()


def test_a_model_that_cannot_be_exported_is_said_to_be_outside(run, monkeypatch, tmp_path):
    def fails(*_):
        raise RuntimeError("data-dependent")

    monkeypatch.setattr("cadr.embedding.huggingface.Pooled.forward", fails)
    export_run(run.path, tmp_path, ("torch",))
    extra = {"input.json": ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=extra).module()
    assert json.loads(extra["input.json"])["pretrained"]["inside"] is False
    assert program(torch.zeros(2, 12)).shape == (2, 2)
    assert "which is not inside (sha256" in (tmp_path / "MODEL_CARD.md").read_text()


def test_another_model_of_the_same_name_is_refused(photos, vit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(vit, "model")
    cadr.train(photos, features="model", out="run", **SETTINGS)
    monkeypatch.chdir(tmp_path / "run")  # the model is found from the run, too
    assert len(cadr.load(tmp_path / "run").predict([photos / "00.png"])) == 1
    weights = load_file(tmp_path / "model" / "model.safetensors")
    save_file({name: 2 * w for name, w in weights.items()}, tmp_path / "model" / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        CheckpointError, match="model is another model here than when the run was trained; put that one"
    ):
        Predictor.load(tmp_path / "run").wanted()
    with pytest.raises(DataError, match="The data have changed since"):
        cadr.load(tmp_path / "run").evaluate()
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(DataError, match=r"model is no folder or .onnx file here, and no model of that name is in"):
        Predictor.load(tmp_path / "run").wanted()


def test_texts_of_a_table(bert, tmp_path):
    rows = ["text,size,species"]
    for n in range(40):
        text = ("the owl hunts by night", "the wren sings by day")[n % 2]
        rows.append(f"{text} {'the' if n % 5 else 'by'} {n},{n % 7},{('owl', 'wren')[n % 2] if n % 4 < 2 else ''}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    run = cadr.train(tmp_path / "t.csv", label_column="species", features=str(bert), out=tmp_path / "run", **SETTINGS)
    assert run.predict(tmp_path / "t.csv").shape == (40,)
    import pandas as pd

    frame = pd.read_csv(tmp_path / "t.csv")
    found = run.predict_proba(frame[["size", "text"]])
    np.testing.assert_allclose(found, run.predict_proba(tmp_path / "t.csv"), atol=1e-6)
    page = run.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "row 2: “the owl hunts by night the 2”" in page
    (card,) = (path for path in run.export(tmp_path / "export") if path.name == "MODEL_CARD.md")
    assert re.search(r"\| text \| 12 \| the text, as .*bert0 embeds it \|", card.read_text())
    assert re.search(r"bert0, which embeds texts, is not inside \(sha256 [0-9a-f]{64}\); it takes", card.read_text())


def test_texts_in_memory(bert):
    texts = [f"the {('owl hunts', 'wren sings')[n % 2]} by {('night', 'day')[n % 2]} {n}" for n in range(40)]
    y = np.array([n % 2 if n % 4 < 2 else -1 for n in range(40)])
    run = cadr.train(texts, y, features=str(bert), **SETTINGS)
    assert run.predict(texts).shape == (40,)
    assert cadr.diagnose(texts, y, features=str(bert)).labelled == 20


def test_diagnose_and_compare(photos, vit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["diagnose", str(photos), "--features", str(vit)]) == 0
    assert "pixels" not in capsys.readouterr().out
    flags = ["--algorithms", "supervised", "fixmatch", "--seeds", "1", "--steps", "20", "--noise", "0.1"]
    assert main(["compare", str(photos), "--features", str(vit), *flags]) == 0


def test_without_features_the_last_line_says_what_to_add(photos, tmp_path, capsys):
    small = tmp_path / "small"
    shutil.copytree(photos, small)
    assert main(["diagnose", str(small), "--image-size", "16"]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith(
        "This is a linear classifier on raw pixels, which tells little about photographs: add --feat"
    )
