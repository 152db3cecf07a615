"""Labels that may be wrong, as a report shows them."""

import dataclasses
import json
import re

import numpy as np
import pytest
from benchmarks.wrong_labels import RECORD

from cadr.data.pool import Pool
from cadr.models import MLP
from cadr.report.label_errors import _FALSE_ALARMS, doubts
from cadr.report.model_outputs import Around, look
from cadr.report.runs import ReportedRun
from tests.report.reports import config, own_pool, plain, written
from tests.training import tiny

NAMES = ("ant", "bee", "cat")


WRONG = [0, 1, 2, 61, 63, 64]  # none of them is held out


def pool_with_wrong_labels() -> Pool:
    """Three clouds in so many dimensions that a network can learn any labels by heart."""
    generator = np.random.default_rng(0)
    truth = np.arange(450) % 3
    examples = (generator.normal(size=(450, 20)) + 8 * np.eye(3, 20)[truth]).astype(np.float32)
    labels = np.where(np.arange(450) < 120, truth, -1)
    labels[WRONG] = (truth[WRONG] + 1) % 3
    return Pool(examples, labels, NAMES, "mine")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "mine"
    tiny.finish(config(steps=10), out, pool=own_pool())
    return look(ReportedRun.read(out, "mine", 0), own_pool(), None, "cpu", rows=100)


def told(labels, wrong):
    """Probabilities that say the labels, but the next class where `wrong` has a number: how sure."""
    probabilities = 0.0001 + 0.9997 * np.eye(3)[labels]
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
    assert [(e.name, e.label, e.guesses[0][0], e.by_neighbours) for e in trained.examples] == [
        (f"row {seen.labelled[i]}", NAMES[labels[i]], NAMES[(labels[i] + 1) % 3], i != 40) for i in (20, 40, 33)
    ]
    assert [e.guesses[0][1] for e in trained.examples] == pytest.approx([sure[i] for i in (20, 40, 33)])
    assert trained.words.startswith(f"Of {len(labels)} labels trained on")
    assert "4 are contradicted by it, or by what it predicts" in trained.words
    assert trained.words.endswith("about 2 of 4 will be right after all. The 3 surest are shown.")


@pytest.mark.parametrize(("mistaken", "shown"), [(0, True), (1, False)])  # of 18 labels held out: 5.6 %
def test_labels_trained_on_are_not_doubted_where_the_model_is_mistaken_as_often(seen, mistaken, shown):
    labels = seen.pool.labels[seen.labelled]
    on_labelled = told(labels, dict.fromkeys(range(4), 0.9))
    around = Around([], np.zeros(len(labels), dtype=np.bool_), on_labelled)
    on_part = told(seen.pool.test_labels, dict.fromkeys(range(mistaken), 0.6))
    one = dataclasses.replace(seen, on_labelled=on_labelled, around=around, on_part=on_part)
    _, trained = doubts(one, NAMES, most=9)
    assert (len(trained.examples) == 4) is shown
    assert ("no more than its own mistakes explain" in trained.words) is not shown


def test_the_rate_of_false_alarms_is_that_of_the_record():
    none_wrong = [record for record in json.loads(RECORD.read_text()) if not record["wrong"]]
    rate = sum(r["false"] for r in none_wrong) / sum(r["trained"] for r in none_wrong)
    assert pytest.approx(rate, abs=0.0005) == _FALSE_ALARMS


def test_labels_held_out_are_doubted_by_the_model(seen):
    labels = seen.pool.test_labels
    one = dataclasses.replace(seen, on_part=told(labels, {2: 0.9998, 3: 0.9999}))
    held_out, _ = doubts(one, NAMES, most=3)
    assert [e.name for e in held_out.examples] == [f"row {seen.rows_of_part[i]}" for i in (3, 2)]
    assert held_out.words.startswith(f"Of {len(labels)} labels held out the model contradicts 2. 2 may be wrong")


def test_a_model_that_is_often_mistaken_is_no_reason_to_doubt_a_label(seen):
    labels = seen.pool.test_labels
    for wrong in (4, len(labels) // 2, len(labels)):
        one = dataclasses.replace(seen, on_part=told(labels, dict.fromkeys(range(wrong), 0.6)))
        held_out, _ = doubts(one, NAMES, most=3)
        assert held_out.examples == []
        assert held_out.words == (
            f"Of {len(labels)} labels held out the model contradicts {wrong}. That is no more than its own mistakes "
            "explain, so no label is shown."
        )
    none, _ = doubts(dataclasses.replace(seen, on_part=told(labels, {})), NAMES, most=3)
    assert none.words == f"Of {len(labels)} labels held out the model contradicts none."


def test_a_network_without_a_middle_is_said_to_tell_nothing(seen):
    *_, trained = doubts(dataclasses.replace(seen, around=None), NAMES, most=3)
    assert "Nothing else here can tell which are wrong." in trained.words


def test_wrong_labels_are_on_the_page_though_the_network_has_learned_them(tmp_path):
    pool = pool_with_wrong_labels()
    settings = dataclasses.replace(config(steps=400), model=MLP((64, 64)))
    tiny.finish(settings, tmp_path / "mine", pool=pool)
    one = look(ReportedRun.read(tmp_path / "mine", "mine", 0), pool, None, "cpu", rows=1000)
    assert np.isin(WRONG, one.labelled).all()
    assert (one.on_labelled.argmax(1) == one.pool.labels[one.labelled]).all()
    page, problems = written([tmp_path / "mine"], tmp_path, pool=pool)
    assert problems == []
    listed = set(map(int, re.findall(r"row (\d+) \((?:labelled|validation)\)", plain(page))))
    assert listed <= set(WRONG)
    assert len(listed) >= len(WRONG) - 1
