"""ONNX files: pictures normalised or raw, tokenised texts, and what such a file may lack."""

import json

import numpy as np
import pytest
from PIL import Image

from cadr.data.raw import Pictures, Texts
from cadr.embedding.embed import embed
from cadr.embedding.items import EmbeddingError
from cadr.embedding.registry import Pretrained
from tests.embedding.tiny import NORMALISED, SIDE, WORDS, save_preprocessing

onnx = pytest.importorskip("onnx", reason="cadr[onnx] is not installed")
pytest.importorskip("onnxruntime", reason="cadr[onnx] is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="cadr[features] is not installed")

PICTURES = Pictures(np.random.default_rng(0).integers(0, 256, (3, 20, 30, 3), dtype=np.uint8))
EMBEDDED = np.random.default_rng(1).normal(size=(len(WORDS), 5)).astype(np.float32)
FLOAT, UINT8, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8, onnx.TensorProto.INT64


def resized(filtered):
    return np.stack([np.asarray(Image.fromarray(each).resize((SIDE, SIDE), filtered)) for each in PICTURES.array])


SEEN = resized(Image.Resampling.BILINEAR)


def save(path, nodes, inputs, outputs, constants=()):
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "graph", [value(*each) for each in inputs], [value(*each) for each in outputs], list(constants)
    )
    opset = onnx.helper.make_opsetid("", 18)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10), path)
    return path


def save_means(path, kind=FLOAT, shape=("n", 3, SIDE, SIDE), axes=(2, 3)):
    """A model that says the mean of every channel, or what else these axes leave."""
    node = onnx.helper.make_node
    nodes = [node("Cast", ["x"], ["y"], to=FLOAT), node("ReduceMean", ["y", "axes"], ["z"], keepdims=0)]
    axes = onnx.numpy_helper.from_array(np.array(axes), "axes")
    return save(path, nodes, [("x", kind, shape)], [("z", FLOAT, None)], [axes])


def save_words(path, inputs=("input_ids", "attention_mask", "token_type_ids")):
    """A model that says a vector of every token, and one of all of them that is no embedding."""
    words = onnx.numpy_helper.from_array(EMBEDDED, "words")
    nodes = [
        onnx.helper.make_node("Gather", ["words", "input_ids"], ["last_hidden_state"]),
        onnx.helper.make_node("Add", ["attention_mask", "token_type_ids"], ["unused"]),
    ]
    given = [(name, INT64, ("n", "t")) for name in inputs]
    return save(path, nodes, given, [("last_hidden_state", FLOAT, None), ("unused", INT64, None)], [words])


def save_tokenizer(folder):
    words = tokenizers.models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))


def test_pictures_are_normalised_as_the_file_beside_says(tmp_path):
    path = save_means(tmp_path / "model.onnx")
    save_preprocessing(tmp_path)
    expected = (SEEN / 255 - NORMALISED["image_mean"]) / NORMALISED["image_std"]
    np.testing.assert_allclose(embed(Pretrained.find(str(path)), PICTURES), expected.mean((1, 2)), atol=1e-5)


def test_the_file_may_lie_in_a_folder_of_the_model(tmp_path):
    path = save_means(tmp_path / "onnx" / "model.onnx", axes=(2,))  # what is left is taken for tokens: (n, 3, w)
    save_preprocessing(tmp_path)
    expected = (SEEN / 255 - NORMALISED["image_mean"]) / NORMALISED["image_std"]
    found = embed(Pretrained.find(str(path)), PICTURES)
    np.testing.assert_allclose(found, expected.mean(1)[..., 0], atol=1e-5)  # the first of them


@pytest.mark.parametrize("rows", ["n", 1])
def test_raw_pictures_need_nothing_beside(tmp_path, rows):
    path = save_means(tmp_path / "model.onnx", UINT8, (rows, SIDE, SIDE, 3), axes=(1, 2))
    found = embed(Pretrained.find(str(path)), PICTURES)
    np.testing.assert_allclose(found, resized(Image.Resampling.BICUBIC).mean((1, 2)), atol=1e-3)


@pytest.mark.parametrize("first", [False, True])
def test_texts_by_the_tokenizer_beside(tmp_path, first):
    path = save_words(tmp_path / "model.onnx")
    save_tokenizer(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": first}))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4}))
    texts = ("owl hunts", "the owl sings by day and by night", "wren")
    found = embed(Pretrained.find(str(path)), Texts(texts))
    ids = [[WORDS.index(word) if word in WORDS else 1 for word in text.split()][:4] for text in texts]
    expected = [EMBEDDED[each[0]] if first else EMBEDDED[each].mean(0) for each in ids]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_it_lacks(tmp_path):
    path = save_means(tmp_path / "model.onnx")
    with pytest.raises(EmbeddingError, match=r"holds no preprocessor_config.json, which says how pictures"):
        embed(Pretrained.find(str(path)), PICTURES)
    with pytest.raises(EmbeddingError, match=r"raw.onnx is no model of texts; name one, such as sentence-transf"):
        embed(Pretrained.find(str(save_means(tmp_path / "raw.onnx", UINT8, ("n", 4, 4, 3)))), Texts(("owl",)))
    with pytest.raises(EmbeddingError, match=r"and there is no tokenizer.json in its folder to make them of texts"):
        embed(Pretrained.find(str(save_words(tmp_path / "words.onnx"))), Texts(("owl",)))
    with pytest.raises(EmbeddingError, match=r"takes x tensor\(float\) \['n', 3\]; expected one input of pictures"):
        embed(Pretrained.find(str(save_means(tmp_path / "flat.onnx", FLOAT, ("n", 3), axes=(1,)))), PICTURES)
    two = save_means(tmp_path / "two.onnx", UINT8, (2, SIDE, SIDE, 3), axes=(1, 2))
    with pytest.raises(EmbeddingError, match=r"two.onnx cannot be run on pictures: .*Got: 3 Expected: 2"):
        embed(Pretrained.find(str(two)), PICTURES)
    (tmp_path / "damaged.onnx").write_bytes(path.read_bytes()[:40])
    with pytest.raises(EmbeddingError, match="cannot be opened as an ONNX model"):
        embed(Pretrained.find(str(tmp_path / "damaged.onnx")), PICTURES)


def test_another_tokenizer_is_another_model(tmp_path):
    path = save_words(tmp_path / "model.onnx")
    save_tokenizer(tmp_path)
    before = Pretrained.find(str(path)).fingerprint
    assert Pretrained.find(str(path)).fingerprint == before
    (tmp_path / "tokenizer.json").write_text("{}")
    assert Pretrained.find(str(path)).fingerprint != before
