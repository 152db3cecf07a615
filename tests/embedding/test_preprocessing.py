"""Pictures before a network against the library's own processors, and configurations that are refused."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from cadr.embedding.encoder import PixelNetwork
from cadr.embedding.items import EmbeddingError
from cadr.embedding.preprocessing import Preprocessing
from tests.embedding.tiny import save_preprocessing, transformers

PICTURES = [
    np.random.default_rng(0).integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in ((40, 61), (33, 20), (9, 7))
]
MOMENTS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("ViT", {"size": {"height": 24, "width": 20}, **MOMENTS}),
        ("ViT", {"size": {"height": 24, "width": 24}, "do_normalize": False}),
        ("CLIP", {"size": {"shortest_edge": 24}, "crop_size": {"height": 24, "width": 24}}),
        ("CLIP", {"size": {"shortest_edge": 20}, "crop_size": {"height": 24, "width": 24}}),  # black at the rim
        ("Bit", {"size": {"shortest_edge": 28}, "crop_size": {"height": 24, "width": 24}, **MOMENTS}),  # DINOv2's
        ("Siglip", {"size": {"height": 24, "width": 24}}),
        ("DeiT", {"size": {"height": 28, "width": 28}, "crop_size": {"height": 24, "width": 24}}),
        ("ConvNext", {"size": {"shortest_edge": 24}, "crop_pct": 0.875}),
        ("ConvNext", {"size": {"shortest_edge": 384}, "crop_pct": 0.875}),
        ("EfficientNet", {"size": {"height": 24, "width": 24}, "rescale_offset": True, "include_top": True, **MOMENTS}),
    ],
)
def test_as_the_library_does_it(tmp_path, kind, settings):
    processor = getattr(transformers, f"{kind}ImageProcessorPil")(**settings)
    processor.save_pretrained(tmp_path)
    ours = Preprocessing.read(tmp_path)
    network = PixelNetwork(nn.Identity(), ours)
    for picture in PICTURES:
        expected = processor(images=picture, return_tensors="np")["pixel_values"][0]
        found = network(torch.from_numpy(ours.fit(picture)[None].copy()))[0]
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "resize", "crop"),
    [
        ({"size": 24, "feature_extractor_type": "ViTFeatureExtractor"}, (24, 24), (24, 24)),
        ({"size": 24, "crop_size": 24, "do_center_crop": True}, 24, (24, 24)),  # CLIP's
        ({"size": 28, "crop_size": 24, "do_center_crop": True, "feature_extractor_type": "DeiTFeatureExtractor"},
         (28, 28), (24, 24)),
        ({"size": 24, "crop_pct": 0.875}, 27, (24, 24)),
    ],
)  # fmt: skip
def test_sizes_as_they_were_written_until_2022(tmp_path, settings, resize, crop):
    found = Preprocessing.read(save_preprocessing(tmp_path, **settings))
    assert (found.resize, found.crop) == (resize, crop)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"do_pad": True}, "asks for the step do_pad, which is not supported"),
        ({"do_resize": False}, "asks for pictures of any size, which is not supported"),
        ({"size": {"shortest_edge": 24}}, "shapes of their own, which is not supported"),
        ({"size": {"shortest_edge": 24, "longest_edge": 30}}, "shapes of their own, which is not supported"),
        ({"size": {"height": 10**9, "width": 24}}, "cannot be used: a side of 1000000000 pixels"),
        ({"image_std": [0.0, 1.0, 1.0]}, "cannot be used: a mean of"),
        ({"image_mean": [0.5]}, "cannot be used: not enough values"),
        ({"size": "large"}, "cannot be used: "),
        ({"resample": 77}, "cannot be used: 77 is not a valid Resampling"),
    ],
)
def test_what_it_does_not_understand_is_refused(tmp_path, settings, message):
    with pytest.raises(EmbeddingError, match=message):
        Preprocessing.read(save_preprocessing(tmp_path, **settings))


def test_without_the_file_or_with_another(tmp_path):
    with pytest.raises(EmbeddingError, match=r"holds no preprocessor_config.json, which says how pictures"):
        Preprocessing.read(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps([1]), encoding="utf-8")
    with pytest.raises(EmbeddingError, match="cannot be used: expected an object; save the image processor again"):
        Preprocessing.read(tmp_path)
