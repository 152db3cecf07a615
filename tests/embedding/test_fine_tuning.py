"""A pretrained network that is tuned as a whole: what it is made of, how fast its layers learn, and its runs."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import cadr
from cadr.cli.main import main
from cadr.config import Config
from cadr.embedding.registry import Pretrained
from cadr.errors import ConfigError, DataError
from cadr.inference.export import export_run
from cadr.inference.predictor import Predictor
from cadr.models.networks import normalised
from cadr.models.pretrained import HuggingFace, layer_rates
from cadr.optim import SGD, Muon
from cadr.optim.flat_parameters import Flat
from cadr.training import train as train_config
from tests.embedding.tiny import save_vit, transformers

FAST: dict[str, Any] = {"steps": 6, "batch": 4, "ratio": 2, "evaluations": 2, "device": "cpu"}


@pytest.fixture(autouse=True)
def unbothered():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cadr.CadrWarning)
        yield


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Red and blue ones of many sizes, in a folder with labels.csv."""
    folder = tmp_path_factory.mktemp("data") / "photos"
    folder.mkdir()
    random, rows = np.random.default_rng(0), ["file,label"]
    for n in range(40):
        pixels = random.integers(0, 120, (18 + n % 5, 20 + n % 3, 3))
        pixels[..., 2 * (n % 2)] += 130
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{n:02}.png")
        if n % 3:
            rows.append(f"{n:02}.png,{['red', 'blue'][n % 2]}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("make", ["vit", "dinov2", "resnet"])
def test_it_sees_what_the_pretrained_model_sees(make, request):
    """Before the first step: its features, of pixels in its own size and normalisation."""
    folder = request.getfixturevalue(make)
    model: Any = HuggingFace(str(folder)).build(3, (3, 16, 16)).eval()
    pictures = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), dtype=np.uint8)
    encoder: Any = Pretrained.find(str(folder), "cpu").load("pictures")
    with torch.no_grad():
        found = model(normalised(torch.from_numpy(pictures), model))
        features = torch.from_numpy(encoder.encode(list(pictures)))
        torch.testing.assert_close(found, model.head(features), rtol=1e-4, atol=1e-5)
        larger = model(normalised(torch.from_numpy(pictures.repeat(2, axis=1).repeat(2, axis=2)), model))
    torch.testing.assert_close(larger, found, rtol=1e-4, atol=1e-4)  # every pixel four times


@pytest.mark.parametrize(("make", "unused"), [("dinov2", {"backbone.model.embeddings.mask_token"}), ("resnet", set())])
def test_what_takes_no_part_is_frozen(make, unused, request):
    model = HuggingFace(str(request.getfixturevalue(make))).build(3, (3, 16, 16))
    logits: Any = model.train()(torch.randn(2, 3, 16, 16))
    logits.square().sum().backward()
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    assert frozen == {name for name, p in model.named_parameters() if p.grad is None} == unused


def test_nothing_is_drawn_in_training(tmp_path):
    """A step is a function of seed and number: dropout would draw from elsewhere."""
    folder = save_vit(tmp_path / "vit")
    config = transformers.ViTConfig.from_pretrained(folder)
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.5
    config.save_pretrained(folder)
    model = HuggingFace(str(folder)).build(3, (3, 16, 16)).train()
    x = torch.randn(4, 3, 16, 16)
    torch.testing.assert_close(model(x), model(x), rtol=0, atol=0)


def test_rates_by_depth():
    names = ["a.embed.w", "a.layer.0.x.w", "a.layer.0.y.1.w", "a.layer.1.x.w", "a.norm.w", "head.w"]
    assert list(layer_rates(names, 0.5).values()) == [0.125, 0.25, 0.25, 0.5, 1, 1]
    assert set(layer_rates(names, 1.0).values()) == {1.0}


@pytest.mark.parametrize("optimiser", [SGD(lr=0.1), Muon(lr=0.1, muon_lr=0.1)], ids=["sgd", "muon"])
def test_layers_move_by_their_rate(vit, optimiser):
    """Each by its share of the way that it goes where all layers learn alike."""

    def moved(decay):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model: Any = HuggingFace(str(vit), decay).build(3, (3, 16, 16))
            flat = Flat(model, optimiser.hidden(model))
            weights, _ = flat.adopt(model)
            gradient, velocity = torch.randn_like(weights), torch.zeros_like(weights)
        before = weights.clone()
        optimiser.begin(flat, weights, gradient, velocity)(torch.ones((), dtype=torch.float64))
        return dict(zip(flat.names, flat.views(weights - before), strict=True)), model.learning_rates

    (alike, _), (found, rates) = moved(1.0), moved(0.5)
    assert {rates[name] for name in rates if "embeddings" in name} == {0.125}
    assert rates["head.weight"] == 1
    for name, step in found.items():
        torch.testing.assert_close(step, rates[name] * alike[name], rtol=1e-3, atol=1e-6)
        assert step.abs().max() > 0


def test_photographs_of_any_size(photos, vit, tmp_path):
    settings = FAST | {"model": f"hf:{vit}", "algorithm": "fixmatch", "out": tmp_path / "run", "quiet": True}
    run = cadr.train(photos, **settings)
    assert run.result["model"] == f"hf:{vit}"
    assert (run.config.source.image_size, run.config.model) == (16, HuggingFace(str(vit)))
    start = dict(HuggingFace(str(vit)).build(2, (3, 16, 16)).named_parameters())
    trained = dict(Predictor.load(run.path).model.named_parameters())
    assert [name for name in start if "weight" in name and (trained[name] == start[name]).all()] == []
    assert cadr.train(photos, **settings).result == run.result  # the same command finds it finished
    probabilities = run.predict_proba(photos)
    export_run(run.path, tmp_path / "export", ("safetensors", "torch"))
    program = torch.export.load(tmp_path / "export" / "model.pt2").module()
    files = sorted(photos.glob("*.png"))
    pixels = [np.asarray(Image.open(path).resize((16, 16), Image.Resampling.BILINEAR)) for path in files]
    found = program(torch.from_numpy(np.stack(pixels))).detach().numpy()
    np.testing.assert_allclose(found, probabilities, atol=1e-4)
    assert f"hf:{vit}" in (tmp_path / "export" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert run.report(tmp_path / "report.html").read_text(encoding="utf-8").count('<img src="data:image/png') > 10


def test_a_run_that_is_stopped_ends_as_one_that_is_not(photos, resnet, tmp_path, monkeypatch):
    """Bit for bit, batch norm's statistics, too; from the command line, with the model named from where it lies."""
    monkeypatch.chdir(resnet.parent)
    flags = ["--batch", "4", "--ratio", "2", "--device", "cpu", "--algorithm", "cadr", "--checkpoint-seconds", "0"]
    flags += ["--steps", "6", "--log-every", "2", "--evaluations", "1"]
    train = ["train", str(photos), "--model", f"hf:{resnet.name}", *flags]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main([*train, "--out", str(whole)]) == 0
    records = train_config(Config.read(whole / "config.toml"), parts)
    assert any(record["kind"] == "train" and record["step"] == 2 for record in records)
    records.close()
    assert main([*train, "--out", str(parts)]) == 0
    one, other = (Predictor.load(path).model.state_dict() for path in (whole, parts))
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=0)
    assert main(["predict", str(whole), str(photos), "--out", str(tmp_path / "p.csv")]) == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 41


def test_pictures_in_an_array_keep_their_size(vit):
    x = np.random.default_rng(0).integers(0, 256, (30, 12, 12, 3), dtype=np.uint8)
    x[::2, :, :, 0] //= 4
    y = np.where(np.arange(30) % 3, np.arange(30) % 2, -1)
    model = cadr.CADRClassifier("fixmatch", model=f"hf:{vit}", steps=4, batch=4, ratio=2, random_state=0).fit(x, y)
    assert model.predict_proba(x).shape == (30, 2)


def test_what_cannot_be_tuned(photos, bert, vit, tmp_path):
    with pytest.raises(ConfigError, match="layer_decay must be above 0 and at most 1"):
        HuggingFace(str(vit), 0.0)
    with pytest.raises(ConfigError, match="The model hf needs the name of a pretrained one"):
        cadr.train(photos, model="hf", **FAST)
    with pytest.raises(DataError, match="is a model of texts, and these are pictures"):
        cadr.train(photos, model=f"hf:{bert}", **FAST)
    with pytest.raises(DataError, match=r"is no folder or .onnx file here"):
        cadr.train(photos, model="hf:somebody/other", **FAST)
    np.savez(tmp_path / "x.npz", x=np.zeros((9, 3), np.float32) + np.arange(9)[:, None], y=[0, 1, -1] * 3)
    with pytest.raises(ConfigError, match="looks at pictures, but x holds features"):
        cadr.train(tmp_path / "x.npz", model=f"hf:{vit}", **FAST)
