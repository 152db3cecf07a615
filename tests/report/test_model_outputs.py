"""What a report sees of a run: which rows, whose predictions, and with which propensities it reckons."""

import dataclasses

import numpy as np
import pytest

from cadr.diagnosis.diagnose import diagnose
from cadr.report.labels import labels_of
from cadr.report.model_outputs import look
from cadr.report.runs import ReportedRun
from tests.report.reports import config, own_pool
from tests.training import tiny

NAMES = ("ant", "bee", "cat")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "mine"
    tiny.finish(config(steps=10), out, pool=own_pool())
    return ReportedRun.read(out, "mine", 0)


@pytest.fixture(scope="module")
def seen(run):
    return look(run, own_pool(), None, "cpu", rows=10)


def test_the_rows_looked_at_are_spread_over_all_that_have_no_label(seen):
    without = np.flatnonzero(own_pool().labels < 0)
    place = np.searchsorted(without, seen.unlabelled)
    assert (without[place] == seen.unlabelled).all()
    assert (place[0], place[-1]) == (0, len(without) - 1)
    assert np.ptp(np.diff(place)) <= 1


def test_an_evaluation_is_of_the_model_before_its_calibration_as_in_training(seen):
    before = np.tile([0.2, 0.3, 0.5], (len(seen.pool.test_labels), 1))
    evaluation = dataclasses.replace(seen, on_part_before=before, on_part=before[:, ::-1]).evaluation
    assert np.sum(evaluation["confusion"], axis=0).tolist() == [0, 0, len(before)]
    assert (evaluation["on"], evaluation["step"]) == ("validation", 10)


def test_propensities_are_those_of_the_diagnosis_where_it_has_any(run, seen):
    labels = labels_of(dataclasses.replace(seen, propensity=np.array([0.11, 0.12, 0.13])), [run], "")
    ant, bee, _ = diagnose(own_pool()).classes  # the last has a single label
    assert labels.propensity.tolist() == pytest.approx([ant.propensity, bee.propensity, 0.13])
    assert list(labels.estimated) == [pytest.approx(ant.propensity), pytest.approx(bee.propensity), None]
