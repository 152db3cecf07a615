"""Labels that may be wrong, as a report shows them."""

import dataclasses
import re

import numpy as np
import pytest

from cadr.data.pool import Pool
from cadr.models import MLP
from cadr.report.label_errors import doubts
from cadr.report.model_outputs import Around, look
from cadr.report.runs import Run
from tests.report.reports import config, own_pool, plain, written
from tests.training import tiny

NAMES = ("ant", "bee", "cat")


WRONG = [0, 1, 2, 60, 61, 62]


def pool_with_wrong_labels() -> Pool:
    """Three clouds in so many dimensions that a network can learn any labels by heart."""
    generator = np.random.default_rng(0)
    truth = np.arange(450) % 3
    examples = (generator.normal(size=(450, 20)) + 5 * np.eye(3, 20)[truth]).astype(np.float32)
    labels = np.where(np.arange(450) < 120, truth, -1)
    labels[WRONG] = (truth[WRONG] + 1) % 3
    return Pool(examples, labels, NAMES, "mine")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "mine"
    tiny.finish(config(steps=10), out, pool=own_pool())
    return look(Run.read(out, "mine", 0), own_pool(), None, "cpu", rows=100)


def told(labels, wrong):
    """Probabilities that say the labels, but the next class where `wrong` has a number: how sure."""
    probabilities = 0.05 + 0.85 * np.eye(3)[labels]
    for place, sure in wrong.items():
        probabilities[place] = (1 - sure) / 2
        probabilities[place, (labels[place] + 1) % 3] = sure
    return probabilities


def test_labels_trained_on_are_doubted_by_the_model_and_by_what_surrounds_them(seen):
    labels = seen.pool.labels[seen.labelled]
    sure = {5: 0.6, 20: 0.9, 33: 0.7, 40: 0.8}
    doubted = np.isin(np.arange(len(labels)), [20, 33])
    around = Around([], doubted, told(labels, {20: 0.9, 33: 0.7, 50: 0.95}))
    one = dataclasses.replace(seen, on_labelled=told(labels, {5: 0.6, 40: 0.8}), on_part=None, around=around)
    (trained,) = doubts(one, NAMES, most=3)
    assert [(e.name, e.label, *e.guesses[0], e.by_neighbours) for e in trained.examples] == [
        (f"row {seen.labelled[i]}", NAMES[labels[i]], NAMES[(labels[i] + 1) % 3], sure[i], i != 40)
        for i in (20, 40, 33)
    ]
    assert trained.words.startswith(f"Of {len(labels)} labels trained on")
    assert "4 may be wrong" in trained.words
    assert trained.words.endswith("The 3 surest are shown.")


def test_labels_held_out_are_doubted_by_the_model(seen):
    labels = seen.pool.test_labels
    one = dataclasses.replace(seen, on_part=told(labels, {2: 0.7, 3: 0.8}))
    held_out, _ = doubts(one, NAMES, most=3)
    assert [e.name for e in held_out.examples] == [f"row {seen.rows_of_part[i]}" for i in (3, 2)]
    assert held_out.words == f"Of {len(labels)} labels held out the model contradicts 2."


def test_a_model_that_is_mostly_mistaken_is_no_reason_to_doubt_a_label(seen):
    labels = seen.pool.test_labels
    for wrong, said in ((len(labels) // 2, False), (len(labels) // 2 + 1, True)):
        one = dataclasses.replace(seen, on_part=told(labels, dict.fromkeys(range(wrong), 0.7)))
        assert ("no reason to doubt a label" in doubts(one, NAMES, most=3)[0].words) is said


def test_a_network_without_a_middle_is_said_to_tell_nothing(seen):
    *_, trained = doubts(dataclasses.replace(seen, around=None), NAMES, most=3)
    assert "Nothing else here can tell which are wrong." in trained.words


def test_wrong_labels_are_on_the_page_though_the_network_has_learned_them(tmp_path):
    pool = pool_with_wrong_labels()
    settings = dataclasses.replace(config(steps=400), model=MLP((64, 64)))
    tiny.finish(settings, tmp_path / "mine", pool=pool)
    one = look(Run.read(tmp_path / "mine", "mine", 0), pool, None, "cpu", rows=1000)
    assert np.isin(WRONG, one.labelled).sum() >= 4
    assert (one.on_labelled.argmax(1) == one.pool.labels[one.labelled]).all()
    page, problems = written([tmp_path / "mine"], tmp_path, pool=pool)
    assert problems == []
    listed = set(map(int, re.findall(r"row (\d+) \((?:labelled|validation)\)", plain(page))))
    assert listed <= set(WRONG)
    assert len(listed) >= len(WRONG) - 1
