"""Finished runs that predictions and reports are made of; tests that change one copy it first."""

import pytest

from tests.evaluate.own_runs import image_run, table_run
from tests.evaluate.reports import config
from tests.train import tiny


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    return table_run(tmp_path_factory.mktemp("trees"))


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    return image_run(tmp_path_factory.mktemp("squares"))


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "clouds-cadr"
    tiny.finish(config(), out)
    return out
