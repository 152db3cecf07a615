"""What the tests take for granted about the process they run in, and finished runs; who changes one copies it first."""

import signal

import pytest

SECONDS = 300  # of one test: one that waits for ever is to fail, not to keep all the others from being run


@pytest.fixture(autouse=True)
def _ends():
    """A loop without an end is a failure of the test that it is in."""

    def out_of_time(*_):
        pytest.fail(f"still not done after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# A shell lets what it starts in the background ignore Ctrl-C, and so would all the processes that are interrupted here.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A run on a table."""
    from tests.report.own_runs import table_run

    return table_run(tmp_path_factory.mktemp("trees"))


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    """A run on images."""
    from tests.report.own_runs import image_run

    return image_run(tmp_path_factory.mktemp("squares"))


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    """A run with a known truth."""
    from tests.report.reports import config
    from tests.training import tiny

    out = tmp_path_factory.mktemp("runs") / "clouds-cadr"
    tiny.finish(config(), out)
    return out


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The smallest run, which saves whenever it can; what is stopped, damaged or continued is compared to it."""
    from tests.training import tiny

    out = tmp_path_factory.mktemp("runs") / "reference"
    tiny.finish(tiny.config(), out)
    return out
