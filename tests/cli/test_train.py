"""`cadr train` from the outside: real runs of seconds."""

import dataclasses
import itertools
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from cadr.cli import run_flags
from cadr.cli.main import INTERRUPTED, Parser, main
from cadr.config import CHOICES, FIXED, Config
from cadr.training.state import TrainingState
from tests.waiting import PATIENCE, until_lines

TINY = ["--steps", "6", "--batch", "4", "--ratio", "2", "--evaluations", "2", "--model", "mlp", "--hidden", "8"]
DIGITS = ["train", "digits", "--protocol", "longtail", "--n-max", "20", "--gamma", "20", *TINY]


def names(kind):
    return {f.name for f in dataclasses.fields(kind)}


def test_no_two_parts_share_a_flag():
    parts = [[*registry.values()] for registry in CHOICES.values()] + [[kind] for kind in FIXED.values()]
    for some, others in itertools.combinations(parts, 2):
        for a, b in itertools.product(some, others):
            assert not names(a) & names(b), f"{a.__name__} and {b.__name__}"
    reserved = {"data", "out", "debug", "help", "run", "choice", "algorithms", "seeds", "processes", *CHOICES}
    assert not reserved & set.union(*(names(kind) for kinds in parts for kind in kinds))


def test_help_shows_the_fields_of_what_is_chosen(tmp_path, capsys):
    def shown(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["train", *arguments, "--help"])
        assert ended.value.code == 0
        return capsys.readouterr().out

    text = shown("digits", "--algorithm", "fixmatch", "--protocol", "mcar", "--model", "mlp")
    chosen = [CHOICES["algorithm"]["fixmatch"], CHOICES["protocol"]["mcar"], CHOICES["model"]["mlp"]]
    for kind in [*chosen, CHOICES["views"]["image"], *FIXED.values()]:
        for field in dataclasses.fields(kind):
            assert f"--{field.name.replace('_', '-')}" in text, field.name
    assert "--beta" not in text
    assert "--beta" in shown("digits", "--algorithm", "cai")
    assert "--dropout" in shown("table.csv")
    np.savez(tmp_path / "rows.npz", x=np.zeros((3, 2)), y=np.array([0, 1, -1]))
    np.savez_compressed(tmp_path / "train.npz", x_train=np.zeros((3, 2)), y_train=np.array([0, 1, -1]))
    np.save(tmp_path / "rows.npy", np.zeros((3, 2)))
    np.save(tmp_path / "images.npy", np.zeros((3, 8, 8), np.uint8))
    (tmp_path / "broken.npz").write_bytes(b"PK")
    for name in ("rows.npz", "train.npz", "rows.npy"):
        assert "--dropout" in shown(str(tmp_path / name))
    for name in ("images.npy", "broken.npz", "none.npz"):
        assert "--flip" in shown(str(tmp_path / name), "--labels", str(tmp_path / "rows.npy"))
    assert "(default: 0.2)" in shown("recipes/hu2022.toml:cifar10-gamma50-cai-beta0.2")


def test_flags_beat_the_recipe_which_beats_the_defaults(tmp_path):
    recipe = tmp_path / "x.toml"
    recipe.write_text('data = "digits"\nalgorithm = "cai"\nbeta = 0.1\nthreshold = 0.8\nlr = 0.2\n')
    parser = Parser()
    arguments = [str(recipe), "--lr", "0.3", "--no-flip"]
    parser.add_argument("data")
    run_flags.prepare(parser, arguments)
    flat = run_flags.read_flat(parser.parse_args(arguments))
    assert flat == {
        **{"data": "digits", "algorithm": "cai", "beta": 0.1, "threshold": 0.8, "lr": 0.3, "flip": False},
        "views": "image",
    }


def test_another_algorithm_drops_what_only_the_old_one_has(tmp_path):
    recipe = tmp_path / "x.toml"
    recipe.write_text('data = "digits"\nalgorithm = "cai"\nbeta = 0.1\nthreshold = 0.8\n')
    choice = run_flags.choose([str(recipe), "--algorithm", "fixmatch"])
    assert choice.recipe == {"data": "digits", "algorithm": "cai", "threshold": 0.8}
    assert choice.named == {"algorithm": "fixmatch"}


def test_a_run_is_trained_and_then_left_alone(tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*DIGITS, "--algorithm", "fixmatch", "--no-flip", "--seed", "7", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "step 6 of 6" in text
    assert "Accuracy " in text
    result = json.loads((out / "result.json").read_text())
    assert (result["algorithm"], result["seed"], result["steps"], result["n_max"]) == ("fixmatch", 7, 6, 20)
    assert "flip = false" in (out / "config.toml").read_text()
    assert main(["train", str(out / "config.toml"), "--out", str(out)]) == 0
    assert "finished already" in capsys.readouterr().out


def test_a_changed_run_is_refused_in_one_sentence(tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*DIGITS, "--out", str(out)]) == 0
    capsys.readouterr()
    assert main([*DIGITS, "--lr", "0.5", "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("cadr: ")
    assert "lr (was 0.03, now 0.5)" in error
    assert error.count("\n") == 1


def test_a_mistake_does_not_take_the_folder(tmp_path, capsys):
    """Some are found only when everything has been opened; the corrected command is not another run then."""
    arguments = [*DIGITS, "--algorithm", "cadr", "--out", str(tmp_path / "run")]
    assert main([*arguments, "--target-prior", "0.5", "0.5"]) == 2
    assert "target_prior must have one number per class (10), not 2" in capsys.readouterr().err
    assert main([*arguments, "--seed", str(2**63)]) == 2
    assert main(arguments) == 0


def test_a_folder_with_other_things_is_left_alone(tmp_path, capsys):
    """The pictures' own folder is easily named by mistake."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.png").write_bytes(b"")
    assert main([*DIGITS, "--out", str(tmp_path / "photos")]) == 2
    assert "holds other things, such as one.png; name a new folder" in capsys.readouterr().err
    assert [f.name for f in (tmp_path / "photos").iterdir()] == ["one.png"]


def test_a_run_keeps_the_number_of_evaluations_it_was_begun_with(tmp_path, capsys):
    """Once it was chosen by the data."""
    np.savez(tmp_path / "x.npz", x=np.arange(80.0).reshape(40, 2), y=np.array([0, 1] * 10 + [-1] * 20))
    command = ["train", str(tmp_path / "x.npz"), *TINY[:6], "--device", "cpu", "--out", str(tmp_path / "run")]
    assert main([*command, "--evaluations", "3"]) == 0
    assert main(command) == 0
    assert main([*command, "--evaluations", "4"]) == 2
    assert "evaluations (was 3, now 4)" in capsys.readouterr().err


def test_what_the_data_choose_is_said_in_flags(tmp_path, capsys):
    labels = np.array([0, 1] * 5 + [-1] * 30)
    bright = np.array([0, 1] * 5 + [0] * 30)[:, None, None]  # those without a label are all dark
    images = np.random.default_rng(0).integers(0, 100, (40, 8, 8)) + 155 * bright
    np.savez(tmp_path / "x.npz", x=images.astype(np.uint8), y=labels)
    flags = ["--steps", "4", "--batch", "4", "--ratio", "2", "--device", "cpu"]
    arguments = ["train", str(tmp_path / "x.npz"), *flags, "--out", str(tmp_path / "my run")]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert f"cadr predict '{tmp_path / 'my run'}' DATA" in text  # fit for a shell
    chosen = r"Chosen by the data: --model \w+ --lr 0.1 --ema [\d.]+ --target-prior [\d.]+ [\d.]+\n"
    assert re.search(chosen, text)
    assert "add --no-flip where left and right matter" in text
    assert main(arguments) == 0
    assert "Chosen" not in capsys.readouterr().out  # by the run that is there, this time
    assert main([*arguments[:-1], str(tmp_path / "other"), "--no-flip"]) == 0
    assert "--no-flip" not in capsys.readouterr().out


def test_class_shares_are_diagnosed_unless_they_are_given(tmp_path, capsys):
    random = np.random.default_rng(0)
    truth = np.arange(300) % 10 // 9  # one row in ten
    x = (random.normal(size=(300, 4)) + 4 * truth[:, None]).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x, y=np.where(np.arange(300) < 100, truth, -1))
    arguments = ["train", str(tmp_path / "x.npz"), "--steps", "4", "--batch", "4", "--ratio", "2", "--device", "cpu"]
    for number, (flags, expected) in enumerate([([], (0.9, 0.1)), (["--target-prior", "1", "3"], (1.0, 3.0))]):
        assert main([*arguments, *flags, "--out", str(tmp_path / f"run{number}")]) == 0
        config = Config.read(tmp_path / f"run{number}" / "config.toml")
        assert config.algorithm.target_prior == pytest.approx(expected, abs=0.05)
        assert ("The target is the class prior" in capsys.readouterr().out) == (not flags)
    assert main([*arguments, "--algorithm", "fixmatch", "--out", str(tmp_path / "fixmatch")]) == 0
    assert "--target-prior" not in capsys.readouterr().out


@pytest.mark.parametrize(("rare", "presumed"), [(2, "equally frequent"), (10, "The target is the class prior")])
def test_labels_that_more_than_the_class_decides_are_warned_of(rare, presumed, tmp_path, capsys):
    random = np.random.default_rng(0)
    truth = (np.arange(300) % rare == 0).astype(int)
    x = (random.normal(size=(300, 4)) + 4 * truth[:, None]).astype(np.float32)
    x[:100, 3] += 5  # rows of another camera are labelled
    np.savez(tmp_path / "x.npz", x=x, y=np.where(np.arange(300) < 100, truth, -1))
    run = ["--steps", "4", "--batch", "4", "--ratio", "2", "--device", "cpu", "--out", str(tmp_path / "run")]
    assert main(["train", str(tmp_path / "x.npz"), *run]) == 0
    said = capsys.readouterr().out
    assert presumed in said
    assert "Warning: Missingness does not look like a matter of class alone" in said


def test_own_data_need_no_protocol(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = np.array([0, 1] * 30)
    examples = (rng.normal(size=(60, 5)) + 3 * labels[:, None]).astype(np.float32)
    np.savez("mine.npz", x=examples, y=np.where(np.arange(60) < 10, labels, -1))
    assert main(["train", "mine.npz", *TINY]) == 0
    text = capsys.readouterr().out
    assert "8 labelled and 50 unlabelled examples" in text
    assert "It holds out 2 more labels" in text
    assert (tmp_path / "runs" / "mine-cap_cai-seed1" / "result.json").exists()
    assert main(["train", "mine.npz", *TINY, "--validation", "0", "--out", "all"]) == 0
    text = capsys.readouterr().out
    assert "10 labelled and 50 unlabelled examples" in text
    assert "no test set" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["digits", "--algorithm", "fixmach"], "--algorithm: there is no 'fixmach', did you mean fixmatch?"),
        (["digits", "--algorithm", "cap-cai"], "--algorithm: there is no 'cap-cai', did you mean cap_cai?"),
        (["digits", "--algorithm", "quux"], "--algorithm: expected one of supervised"),
        (["digits", "--step", "9"], "unrecognized arguments: --step 9 (did you mean --steps?)"),
        (["digits", "--protocol", "mcar", "--gamma", "3"], "unrecognized arguments: --gamma 3"),
        (["digits", "--steps", "many"], "--steps: expected a whole number, got 'many'"),
        (["digits", "--steps", "0", "--protocol", "mcar"], "steps must be at least 1"),
        (["recipes/none.toml"], "there is no recipe recipes/none.toml"),
        ([], "the following arguments are required: DATA"),
    ],
)
def test_mistakes(arguments, sentence, capsys):
    status: object = None
    try:
        status = main(["train", *arguments])
    except SystemExit as ended:
        status = ended.code
    error = capsys.readouterr().err
    assert status == 2
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_how_to_continue_and_does(tmp_path, number):
    command = [sys.executable, "-m", "cadr", *DIGITS, "--out", "run", "--log-every", "1"]
    command[command.index("--steps") + 1] = "100000"
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    metrics = tmp_path / "run" / "metrics.jsonl"
    until_lines(metrics, 4)
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == INTERRUPTED
    assert "saved in run. The same command continues it." in output
    done = json.loads(metrics.read_text().splitlines()[-1])["step"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert first.startswith("Continuing at step ")
    assert int(first.split()[3]) >= done


def test_a_stopped_run_that_is_no_longer_finite_does_not_claim_to_be_saved(tmp_path, monkeypatch, capsys):
    follow = TrainingState.follow

    def interrupted(state, output, ema):
        follow(state, output, ema)
        if int(state.step) == 20:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TrainingState, "follow", interrupted)  # between two steps, far from any record
    out = tmp_path / "run"
    assert main([*DIGITS, "--out", str(out), "--lr", "1e30", "--steps", "1000", "--log-every", "500"]) == 2
    output, error = capsys.readouterr()
    assert "saved" not in output
    assert "no longer finite at step 20; nothing had been saved yet" in error
    assert error.count("\n") == 1
    assert not (out / "checkpoint").exists()


def test_a_run_stopped_while_it_opens_its_data_does_not_claim_to_be_saved(tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("cadr.training.loop.prepare", interrupted)
        assert main([*DIGITS, "--out", str(tmp_path / "run")]) == INTERRUPTED
    assert "Stopped before anything was saved. The same command starts again." in capsys.readouterr().out
    assert main([*DIGITS, "--out", str(tmp_path / "run")]) == 0
