"""`--minutes`: as many steps as go into the time, by a clock of our own; and the same run wherever it is continued."""

from __future__ import annotations

import pytest

from cadr.cli.main import main
from cadr.config import Config
from cadr.errors import ConfigError
from cadr.optim import SGD, Muon, averaged_over
from cadr.training import pace
from cadr.training.network import evaluate
from cadr.training.plan import plan
from cadr.training.prepare import prepare
from cadr.training.step import Step
from tests.training import tiny

DIGITS = {
    "data": "digits",
    "protocol": "mcar",
    "n": 50,
    "model": "mlp",
    "batch": 8,
    "ratio": 1,
    "evaluations": 5,
    "device": "cpu",
}
PER_STEP, PER_EVALUATION, SETTING_UP = 0.04, 0.3, 7.0


@pytest.fixture
def clock(monkeypatch):
    """Time that goes by in steps, in evaluations and in setting up, and nowhere else."""
    now = [1000.0]

    def spend(seconds, then):
        def wrapped(*arguments, **named):
            now[0] += seconds(*arguments)
            return then(*arguments, **named)

        return wrapped

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(Step, "advance", spend(lambda _, n: PER_STEP * n, Step.advance))
    monkeypatch.setattr(pace, "prepare", spend(lambda *_: SETTING_UP, prepare))
    monkeypatch.setattr(pace, "evaluate", spend(lambda *_: PER_EVALUATION, evaluate))
    return now


@pytest.mark.parametrize("minutes", [0.5, 2.0])
def test_the_minutes_are_used_and_not_exceeded(clock, minutes):
    planned = plan(DIGITS | {"minutes": minutes})
    timing = clock[0] - 1000.0
    steps = planned.config.training.steps
    assert planned.pace == pace.Pace(minutes, steps, 5, 1000 * PER_STEP)
    whole = timing + SETTING_UP + steps * PER_STEP + 5 * PER_EVALUATION
    assert 0.85 * 60 * minutes < whole < 60 * minutes
    assert f"--steps {steps}" in planned.sentences()[0]


def test_evaluations_take_a_tenth_of_the_time_where_nobody_says_how_many_there_are(clock):
    config = plan({key: value for key, value in DIGITS.items() if key != "evaluations"} | {"minutes": 1.0}).config
    assert config.training.evaluations == int(6 / PER_EVALUATION)


def test_too_little_time_is_said_so(clock):
    with pytest.raises(ConfigError, match=r"minutes: 0\.2 are too few here: setting up takes 7 s"):
        plan(DIGITS | {"minutes": 0.2})


def test_optimiser_and_average_are_those_of_a_short_run(clock):
    config = plan(DIGITS | {"minutes": 0.5}).config
    assert config.optimiser == Muon(cosine=0.5, ema=averaged_over(config.training.steps))
    other = plan(DIGITS | {"minutes": 0.5, "optimiser": "sgd"}).config
    assert other.optimiser == SGD()


def test_what_was_chosen_is_not_measured_again(clock, monkeypatch, tmp_path):
    first = plan(DIGITS | {"minutes": 0.5})
    monkeypatch.setattr(pace, "measured", None)
    written = Config.from_toml(first.config.to_toml()).to_dict()
    assert plan(written, recipe=True).config == first.config
    (tmp_path / "config.toml").write_text(first.config.to_toml())
    assert plan(DIGITS | {"minutes": 0.5}, out=tmp_path).config == first.config
    assert plan(DIGITS | {"minutes": 0.5, "steps": 30}).config.training.steps == 30


def test_a_run_of_so_many_minutes_that_is_interrupted_is_continued(tmp_path, capsys):
    flags = [text for name, value in DIGITS.items() if name != "data" for text in (f"--{name}", str(value))]
    command = ["train", "digits", *flags, "--minutes", "0.05", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    said, content = capsys.readouterr().out, tiny.result(tmp_path / "run")
    assert f"Chosen for 0.05 minutes: --steps {content['steps']}" in said
    assert main(command) == 0
    assert "finished already" in capsys.readouterr().out
    assert main(["train", str(tmp_path / "run" / "config.toml"), "--out", str(tmp_path / "again")]) == 0
    assert tiny.result(tmp_path / "again")["last"] == content["last"]


def test_own_data_are_learned_in_so_many_minutes(tmp_path):
    tiny_pool = tiny.pool()
    planned = plan({"data": "clouds.npz", "algorithm": "cadr", "minutes": 0.05, "device": "cpu"}, tiny_pool)
    assert planned.config.training.steps >= 1
    assert isinstance(planned.config.optimiser, Muon)
    assert planned.config.optimiser.ema == averaged_over(planned.config.training.steps)


@pytest.mark.parametrize(("steps", "expected"), [(1, 0.5), (40, 0.5), (200, 0.9), (8192, 0.9976), (2**17, 0.999)])
def test_the_average_is_over_a_twentieth_of_the_run(steps, expected):
    assert averaged_over(steps) == expected
