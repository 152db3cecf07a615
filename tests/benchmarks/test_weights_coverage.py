"""The record of how often AIPW's interval holds the truth: its summary is that of its surveys."""

import json

import numpy as np
import pytest

from benchmarks import weights_coverage

RECORD = json.loads(weights_coverage.RECORD.read_text(encoding="utf-8"))


def test_the_summary_is_that_of_the_surveys():
    assert RECORD["summary"] == weights_coverage.build(RECORD)
    for found in RECORD["summary"].values():
        assert abs(found["aipw"]["bias"]) < 0.25
        assert found["interviewed alone"]["bias"] > 1.5
        assert found["interviewed alone"]["covered"] < 10


def test_the_truth_is_that_of_a_large_survey():
    random = np.random.default_rng(0)
    group = random.choice(3, 10**6, p=weights_coverage.SHARES)
    first = weights_coverage.CENTRES[group, 0] + random.normal(size=10**6)
    income = np.array(weights_coverage.INCOME)[group] + 2 * first
    assert weights_coverage.truth(1.0) == pytest.approx(income.mean(), abs=0.02)


def test_a_survey_is_drawn_again():
    (name, surveys), *_ = RECORD["surveys"].items()
    seed = next(iter(surveys))
    again = weights_coverage.one(weights_coverage.SETTINGS[name], int(seed))
    assert again["interviewed alone"] == surveys[seed]["interviewed alone"]
    assert again["aipw"] == pytest.approx(surveys[seed]["aipw"], abs=0.02)
