"""Shares that were estimated in training, over time and beside the truth."""

import dataclasses

import numpy as np

from cadr.algorithms import CADR
from cadr.data.pool import Pool
from cadr.models import MLP
from cadr.training import train
from tests.report.reports import config, plain, written


def pool(truth_is_known: bool) -> Pool:
    random = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [30, 60, 210])
    examples = (4 * np.eye(3, 4)[truth] + random.normal(size=(300, 4))).astype(np.float32)
    labels = np.full(300, -1)
    for c in range(3):
        labels[np.flatnonzero(truth == c)[:10]] = c
    return Pool(examples, labels, ("ant", "bee", "cat"), "clouds", hidden_labels=truth if truth_is_known else None)


def page(folder, truth_is_known=True, **method):
    data = pool(truth_is_known)
    settings = dataclasses.replace(config(), algorithm=CADR(**method), model=MLP((16, 16)))
    records = list(train(settings, folder / "run", data))
    shown, problems = written([folder / "run"], folder, pool=data)
    assert not problems
    return plain(shown), shown, [record for record in records if record["kind"] == "shares"]


def test_estimates_are_shown_with_intervals_and_the_truth(tmp_path):
    words, shown, records = page(tmp_path, target_prior="estimated")
    assert "Estimated share of every class, %" in words
    assert "the truth" in words
    assert shown.count('class="band"') == 3
    last = records[-1]
    np.testing.assert_allclose(last["truth"], [100 * 20 / 270, 100 * 50 / 270, 100 * 200 / 270], rtol=1e-5)
    assert f"its last interval from {last['low'][2]:.3g} to {last['high'][2]:.3g} %" in words
    assert f"truth: from {last['truth'][2]:.3g} to {last['truth'][2]:.3g} %" in words


def test_where_nobody_knows_the_truth_none_is_drawn(tmp_path):
    words, shown, records = page(tmp_path, truth_is_known=False, target_prior="estimated")
    assert "Estimated share of every class, %" in words
    assert shown.count('class="band"') == 3
    assert "truth:" not in words
    assert "truth" not in records[-1]


def test_other_runs_have_no_such_section(tmp_path):
    words, shown, records = page(tmp_path)
    assert not records
    assert "Estimated share of every class" not in words
    assert "Class shares" not in shown
