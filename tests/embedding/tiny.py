"""Pretrained models small enough to be made on the spot, in the formats that people have them in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="cadr[features] is not installed")

SIDE, WIDTH = 16, 12
_SHAPE = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": SIDE,
    "patch_size": 4,
}
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "owl", "wren", "sings", "hunts", "by", "night", "day", "##s")
NORMALISED = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}


def save_vit(folder: Path, classifier: bool = False, **preprocessing) -> Path:
    """A vision transformer; with a classifier on it, as most checkpoints are, it has no pooler."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.ViTConfig(intermediate_size=24, **_SHAPE)
        (transformers.ViTForImageClassification if classifier else transformers.ViTModel)(config).save_pretrained(
            folder
        )
    return save_preprocessing(folder, **preprocessing)


def save_dinov2(folder: Path) -> Path:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        transformers.Dinov2Model(transformers.Dinov2Config(mlp_ratio=2, **_SHAPE)).save_pretrained(folder)
    size = {"size": {"shortest_edge": SIDE + 4}, "do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}}
    return save_preprocessing(folder, **size)


def save_resnet(folder: Path) -> Path:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, WIDTH], depths=[1, 1], layer_type="basic")
        transformers.ResNetModel(config).save_pretrained(folder)
    return save_preprocessing(folder)


def save_bert(folder: Path) -> Path:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        config = transformers.BertConfig(
            vocab_size=len(WORDS),
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=24,
            max_position_embeddings=16,
        )
        transformers.BertModel(config).save_pretrained(folder)
    tokenizer = transformers.BertTokenizer(vocab={word: at for at, word in enumerate(WORDS)}, model_max_length=16)
    tokenizer.save_pretrained(folder)
    return folder


def save_preprocessing(folder: Path, **settings) -> Path:
    size = {"do_resize": True, "size": {"height": SIDE, "width": SIDE}, "resample": 2}
    content = size | {"do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True} | NORMALISED | settings
    (folder / "preprocessor_config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
