"""The estimator on raw pictures and texts: it learns and predicts what the vectors of the same model would."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from cadr import CADRClassifier, load, train
from cadr.data.raw import PictureFiles, Pictures, Texts
from cadr.embedding.embed import embed
from cadr.embedding.registry import Pretrained
from cadr.errors import CadrError, DataError

pytestmark = pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")  # so few rows teach nothing
FAST: dict[str, Any] = {"algorithm": "ensemble", "random_state": 0}
Y = np.array([n % 2 if n % 5 < 3 else -1 for n in range(40)])


@pytest.fixture(scope="module")
def pictures():
    """Reddish and bluish, of many sizes."""
    random = np.random.default_rng(0)
    found = []
    for n in range(40):
        pixels = random.integers(0, 120, (18 + n % 5, 20 + n % 3, 3))
        pixels[..., 2 * (n % 2)] += 130
        found.append(pixels.astype(np.uint8))
    return found


def by_vectors(vectors):
    return CADRClassifier(**FAST).fit(vectors, Y).predict_proba(vectors)


def test_pictures_as_paths_arrays_and_images_of_pillow(pictures, vit, tmp_path):
    for n, pixels in enumerate(pictures):
        Image.fromarray(pixels).save(tmp_path / f"{n:02}.png")
    paths = sorted(tmp_path.glob("*.png"))
    expected = by_vectors(embed(Pretrained.find(str(vit)), PictureFiles(tuple(paths))))
    model = CADRClassifier(features=str(vit), **FAST).fit(paths, Y)
    assert model.n_features_in_ == 12
    images = [Image.open(path) for path in paths]
    for same in (paths, list(map(str, paths)), pictures, images):
        np.testing.assert_allclose(model.predict_proba(same), expected, atol=1e-4)


def test_transparent_pictures_lie_on_white_as_in_files(vit, tmp_path):
    image = Image.new("RGBA", (20, 20), (255, 0, 0, 100))
    image.save(tmp_path / "a.png")
    from cadr.data.raw import raw_of

    np.testing.assert_array_equal(raw_of("X", [image]).read(0), raw_of("X", [tmp_path / "a.png"]).read(0))


def test_an_array_of_pictures(vit):
    x = np.random.default_rng(0).integers(0, 256, (40, 12, 12, 3), dtype=np.uint8)
    expected = by_vectors(embed(Pretrained.find(str(vit)), Pictures(x)))
    np.testing.assert_allclose(
        CADRClassifier(features=str(vit), **FAST).fit(x, Y).predict_proba(x), expected, atol=1e-4
    )


# no two alike to the tiny model: equal rows of an array are one row with a weight
TEXTS = [
    f"the {('owl hunts', 'wren sings')[n % 2]} by {('night', 'day')[n % 2]} "
    + " ".join(("the", "by")[n >> bit & 1] for bit in range(6))
    for n in range(40)
]


def test_texts(bert, tmp_path):
    expected = by_vectors(embed(Pretrained.find(str(bert)), Texts(tuple(TEXTS))))
    model = CADRClassifier(features=str(bert), **FAST).fit(TEXTS, Y)
    for same in (TEXTS, np.array(TEXTS), pd.Series(TEXTS)):
        np.testing.assert_allclose(model.predict_proba(same), expected, atol=1e-4)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict_proba(TEXTS), expected, atol=1e-4)
    run = load(model.save(tmp_path / "run"))
    assert run.config.source.features == str(bert)
    np.testing.assert_allclose(run.predict_proba(TEXTS), expected, atol=1e-4)


def test_a_column_of_texts_among_others(bert, tmp_path):
    frame = pd.DataFrame(
        {"text": TEXTS, "size": np.arange(40) % 7, "colour": np.where(np.arange(40) % 3, "red", "tan")}
    )
    model = CADRClassifier(features=str(bert), **FAST).fit(frame, Y)
    assert model.n_features_in_ == 3
    vectors = embed(Pretrained.find(str(bert)), Texts(tuple(TEXTS)))
    red = frame["colour"] == "red"
    expected = by_vectors(np.column_stack([vectors, frame["size"], red, ~red]).astype(np.float32))
    found = model.predict_proba(frame)
    np.testing.assert_allclose(found, expected, atol=0.05)
    assert (found.argmax(1) == expected.argmax(1)).all()
    assert model.report(tmp_path / "report.html", frame, Y) == []
    assert "“the owl hunts by night" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_report_shows_pictures_and_the_export_takes_them(pictures, vit, tmp_path):
    model = CADRClassifier(features=str(vit), **FAST).fit(pictures, Y)
    model.report(tmp_path / "report.html", pictures, Y)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count('<img src="data:image/png') > 10
    model.export(tmp_path / "export")
    import torch

    program = torch.export.load(tmp_path / "export" / "model.pt2").module()
    fitted = np.stack([Pretrained.find(str(vit)).load("pictures").fit(each) for each in pictures[:6]])
    found = program(torch.from_numpy(fitted)).detach().numpy()
    np.testing.assert_allclose(found, model.predict_proba(pictures[:6]), atol=1e-4)


def test_scikit_learn_clones_and_splits_it(bert):
    model = clone(CADRClassifier(features=str(bert), **FAST))
    assert model.get_params()["features"] == str(bert)
    assert cross_val_score(model, TEXTS, Y, cv=2).shape == (2,)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.zeros((40, 3)), "X: expected texts, or pictures as paths"),
        (pd.DataFrame({"a": np.arange(40.0)}), "is for pictures and texts, and X has neither"),
        (pd.DataFrame({"a": ["red", "tan"] * 20}), "is for pictures and texts, and X has neither"),
        (5, "X: expected texts, or pictures as paths"),
        (np.zeros((0, 4, 4, 3), np.uint8), "there are no pictures to embed"),
    ],
)
def test_what_it_is_not_for(X, said, vit):
    with pytest.raises(DataError, match=said):
        CADRClassifier(features=str(vit), **FAST).fit(X, Y)


def test_texts_without_a_model_are_said_to_need_one():
    frame = pd.DataFrame({"text": TEXTS, "size": np.arange(40) % 7})
    with pytest.raises(CadrError, match="column 'text' holds texts, which need a pretrained model"):
        CADRClassifier(**FAST).fit(frame, Y)
    said = "X holds texts, which are learned from through a pretrained model: give features=NAME, such as sentence-tr"
    for texts in (TEXTS, np.array(TEXTS), pd.Series(TEXTS)):
        with pytest.raises(CadrError, match=said):
            CADRClassifier(**FAST).fit(texts, Y)
    with pytest.raises(CadrError, match=said):
        train(TEXTS, Y)
    with pytest.raises(
        CadrError, match=r"X holds pictures, which are learned from through .*, such as facebook/dinov2"
    ):
        train([Image.new("RGB", (8, 8))] * 40, Y)
