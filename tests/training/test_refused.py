"""A newest checkpoint that is refused is told of, costs a finished run its last steps, and is no older one's equal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cadr.cli.main import main
from cadr.errors import CheckpointError
from cadr.inference import evaluate_run
from cadr.inference.predictor import Predictor
from cadr.training import checkpoint, train
from tests.training import tiny


@pytest.fixture
def damaged(reference, tmp_path) -> Path:
    """A finished run whose newest checkpoint has lost its end; the one before it is of step 55."""
    run: Path = shutil.copytree(reference, tmp_path / "run")
    part = run / checkpoint.CURRENT / "part-000.pt"
    part.write_bytes(part.read_bytes()[:-100])
    return run


def newer(run: Path) -> None:
    path = run / checkpoint.CURRENT / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"format": 2, "seal": manifest.pop("sha256")}))


def test_who_asks_a_run_hears_that_an_older_checkpoint_answers(damaged, capsys):
    assert Predictor.load(damaged, device="cpu").step == 55
    assert evaluate_run(damaged, pool=tiny.pool(), device="cpu")["step"] == 55
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"Warning: The checkpoint {damaged / 'checkpoint'} cannot be used (")
        assert line.endswith("The one before it is used, of step 55.")


def test_predictions_come_with_the_warning(trees, tmp_path, capsys):
    run = shutil.copytree(trees, tmp_path / "run")
    shutil.copytree(run / checkpoint.CURRENT, run / checkpoint.PREVIOUS, dirs_exist_ok=True)
    (run / checkpoint.CURRENT / "manifest.json").write_text("{")
    assert main(["predict", str(run), str(trees.parent / "trees.csv"), "--out", str(tmp_path / "p.csv")]) == 0
    assert capsys.readouterr().err.startswith("Warning: The checkpoint ")


def test_a_sound_run_is_used_without_a_word(reference, capsys):
    assert Predictor.load(reference, device="cpu").step == 60
    assert capsys.readouterr().err == ""


def test_a_finished_run_does_the_steps_again_that_it_has_lost(damaged, reference):
    start, *_, last = train(tiny.config(), damaged, pool=tiny.pool())
    assert "cannot be used" in start["message"]
    assert start["resumed"] == 55
    assert last["message"] == "Finished after 60 steps."
    tiny.assert_same(reference, damaged)


def test_and_is_not_finished_if_stopped_meanwhile(damaged, reference):
    records = train(tiny.config(), damaged, pool=tiny.pool())
    next(records)
    records.close()
    assert tiny.finish(tiny.config(), damaged)["message"] == "Finished after 60 steps."
    tiny.assert_same(reference, damaged)


def test_a_newer_format_is_no_damage(reference, tmp_path):
    run = shutil.copytree(reference, tmp_path / "run")
    newer(run)
    sentence = r"^The checkpoint .* was made by a newer cadr; install that version to use it\.$"
    with pytest.raises(CheckpointError, match=sentence):
        Predictor.load(run, device="cpu")
    with pytest.raises(CheckpointError, match=sentence):
        tiny.finish(tiny.config(), run)
    assert not (run / checkpoint.REFUSED).exists()
