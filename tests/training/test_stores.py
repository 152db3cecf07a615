"""Methods that remember their examples, refresh their state or draw balanced batches: stopped and continued alike."""

from __future__ import annotations

import dataclasses

import pytest

from cadr.algorithms import ALGORITHMS, DARP
from cadr.training import train
from tests.training import tiny

NAMES = ("darp", "dash", "flexmatch", "freematch", "prg", "prg_last", "resampling", "simpro", "softmatch")


@pytest.mark.parametrize("name", NAMES)
def test_a_stopped_run_ends_as_the_one_that_was_not(name, tmp_path):
    settings = dataclasses.replace(tiny.config(), algorithm=ALGORITHMS[name]())
    if name == "darp":
        settings = dataclasses.replace(settings, algorithm=DARP(refresh_every=7, threshold=0.6, target="estimated"))
    tiny.finish(settings, tmp_path / "whole")
    for stop in (15, 30, 45):
        for record in (records := train(settings, tmp_path / "stopped", pool=tiny.pool())):
            if record["step"] >= stop:
                records.close()
                break
    tiny.finish(settings, tmp_path / "stopped")
    tiny.assert_same(tmp_path / "whole", tmp_path / "stopped")
