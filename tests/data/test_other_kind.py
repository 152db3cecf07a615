"""Images for a model of features, or features for a model of images: it is the kind that is wrong, and not the size."""

import numpy as np
import pytest

from cadr.data.sources.base import PredictionDataError, Wanted
from cadr.data.sources.columns import Column
from cadr.data.sources.registry import open_blocks
from tests.data.writers import write_image

IMAGES = np.zeros((2, 8, 6, 3), np.uint8)
OF_A_TABLE = Wanted((3,), ("x", "y"), columns=tuple(map(Column, "abc")))
OF_AN_ARRAY = Wanted((1,), ("x", "y"))
OF_IMAGES = Wanted((8, 6, 3), ("x", "y"))


def refusal(data, wanted):
    with pytest.raises(PredictionDataError) as caught:
        list(open_blocks(str(data), wanted).blocks)
    return str(caught.value)


def folder(where):
    write_image(where / "photos" / "0.png", IMAGES[0])
    return where / "photos"


def npy(where, array):
    np.save(where / "new.npy", array)
    return where / "new.npy"


@pytest.mark.parametrize(
    ("wanted", "trained"), [(OF_A_TABLE, "a table of 3 features"), (OF_AN_ARRAY, "an array of 1 feature")]
)
def test_images_for_a_model_of_features(wanted, trained, tmp_path):
    end = f"but the model was trained on {trained}; give data like those, or a model trained on images"
    data = folder(tmp_path)
    assert refusal(data, wanted) == f"{data} is a folder, which is read as images, {end}"
    data = npy(tmp_path, IMAGES)
    assert refusal(data, wanted) == f"{data} holds images of 6×8 pixels, {end}"
    assert refusal("digits", wanted) == f"digits holds images of 8×8 pixels, {end}"


def test_features_for_a_model_of_images(tmp_path):
    end = "but the model was trained on images of 6×8 pixels; give data like those, or a model trained on features"
    data = tmp_path / "new.csv"
    data.write_text("a,b,c\n1,2,3\n")
    assert refusal(data, OF_IMAGES) == f"{data} is a table, {end}"
    data = npy(tmp_path, np.zeros((2, 3), np.float32))
    assert refusal(data, OF_IMAGES) == f"{data} holds 3 features, {end}"


def test_the_right_kind_of_the_wrong_size(tmp_path):
    data = npy(tmp_path, IMAGES[:, :5])
    assert refusal(data, OF_IMAGES).endswith(
        "on images of 6×8 pixels, these are images of 6×5 pixels; train with --image-size to allow for other sizes"
    )
    data = npy(tmp_path, np.zeros((2, 5), np.float32))
    assert refusal(data, OF_A_TABLE).endswith("the model was trained on 3 features, these are 5 features")
