"""Texts beside numbers in other units: one of these does not outweigh all that the texts say."""

import numpy as np
import pytest

from cadr import CADRClassifier
from cadr.data.pool import Pool
from cadr.data.sources.columns import Column
from cadr.training import train
from cadr.training.ensemble_run import in_unit_of_texts
from cadr.training.plan import plan

COLUMNS = (Column("a"), Column("text", texts=40), Column("b", words=("x", "y")), Column("more", texts=3))


def test_the_main_direction_of_the_texts_is_the_unit_of_the_others():
    random = np.random.default_rng(0)
    raw = random.normal(size=(300, 46)) * random.uniform(0.01, 0.1, 46)
    raw[:, 0] *= 1e6
    scale = raw.std(0)
    x = ((raw - raw.mean(0)) / scale).astype(np.float32)
    texts = [*range(1, 41), 43, 44, 45]
    found = in_unit_of_texts(COLUMNS, x, scale)
    np.testing.assert_array_equal(found[texts], scale[texts])
    expected = 0.3 * np.linalg.svd(raw[:, texts] - raw[:, texts].mean(0), compute_uv=False)[0] / np.sqrt(300)
    np.testing.assert_allclose(found[[0, 41, 42]], expected, rtol=1e-5)


def test_tables_without_texts_and_texts_alone_stay_as_they_are():
    scale, x = np.array([1.0, 2.0]), np.zeros((5, 2), np.float32)
    for columns in (None, (), (Column("a"), Column("b")), (Column("text", texts=2),)):
        assert in_unit_of_texts(columns, x, scale) is scale


@pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")
def test_a_number_that_says_nothing_costs_little(tmp_path):
    """Beside vectors that tell the classes apart."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 3, 300)
    vectors = 0.05 * (random.normal(size=(300, 150)) + 0.35 * random.normal(size=(3, 150))[truth])
    number = random.lognormal(5, 0.5, (300, 1))
    y = np.where(random.random(300) < np.array([0.2, 0.1, 0.05])[truth], truth, -1)
    columns = (Column("text", texts=150), Column("length"))
    names = tuple(feature for column in columns for feature in column.features)
    x = np.concatenate((vectors, number), axis=1).astype(np.float32)
    pool = Pool(x, y, ("a", "b", "c"), "t", feature_names=names, columns=columns)
    for _ in train(plan({"data": "t", "algorithm": "ensemble"}, pool).config, tmp_path, pool):
        pass
    from cadr.inference.predictor import Predictor

    guess = Predictor.load(tmp_path).probabilities(x).argmax(1).numpy()
    alone = CADRClassifier("ensemble", random_state=0).fit(vectors, y).predict(vectors)
    assert (guess == truth)[y < 0].mean() > (alone == truth)[y < 0].mean() - 0.05
