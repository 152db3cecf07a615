"""What damaged and hostile files have done to commands once: each is one sentence now. `make fuzz` looks for more."""

import hashlib
import json
import os
import shutil

import pytest

from cadr.cli.main import main
from cadr.training import checkpoint
from tests.report.own_runs import COLUMNS, TINY, table, write_csv


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, and a run of a network and of an ensemble on it."""
    folder = tmp_path_factory.mktemp("hostile")
    x, truth = table(60)
    rows = [[*map(float, x[i]), ("ash", "birch", "oak")[truth[i]] if i < 40 else ""] for i in range(60)]
    write_csv(folder / "t.csv", [*COLUMNS, "label"], rows)
    assert main(["train", str(folder / "t.csv"), *TINY, "--algorithm", "fixmatch", "--out", str(folder / "net")]) == 0
    assert main(["train", str(folder / "t.csv"), "--algorithm", "logistic", "--out", str(folder / "fit")]) == 0
    assert main(["train", str(folder / "t.csv"), "--algorithm", "forest", "--out", str(folder / "trees")]) == 0
    return folder


@pytest.fixture
def there(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def refused(arguments, capsys):
    capsys.readouterr()
    assert main(arguments) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    return sentence


@pytest.mark.parametrize("file", ["labels.csv", "labels.json", "labels.xml"])
def test_a_link_that_leads_in_a_circle(there, capsys, file):
    (there / file).symlink_to(there / file)
    assert file in refused(["data", "show", "t.csv", "--labels", file], capsys)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        ("recipe.toml", ["train", "recipe.toml:a"]),
        ("split.json", ["data", "show", "digits", "--split", "split.json"]),
        *(
            (f"net/{name}", ["evaluate", "net"])
            for name in ("config.toml", "input.json", "validation.json", "checkpoint/manifest.json")
        ),
        ("net/calibration.json", ["predict", "net", "t.csv", "--out", "p.csv"]),
        ("net/metrics.jsonl", ["report", "net", "--out", "r.html"]),
        ("net/result.json", ["report", "net", "--out", "r.html"]),
    ],
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(there, capsys, file, arguments):
    (there / file).unlink(missing_ok=True)
    os.mkfifo(there / file)
    assert "pipe" in refused(arguments, capsys)


def _signed(folder, change):
    """The checkpoint with other tensors, and hashes that fit them."""
    tensors, facts = checkpoint.load(folder / "checkpoint")
    change(tensors)
    shutil.rmtree(folder / "checkpoint")
    checkpoint.save(folder, tensors, facts)
    manifest = json.loads((folder / "checkpoint" / "manifest.json").read_text())
    digest = manifest.pop("sha256")
    assert digest == hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize("name", ["ensemble.shifts", "ensemble.weights", "ensemble.tilt", "held_out", "labelled_rows"])
@pytest.mark.parametrize("how", ["gone", "shorter", "wider"])
@pytest.mark.parametrize("arguments", [["evaluate", "fit"], ["predict", "fit", "t.csv", "--out", "p.csv"]])
def test_a_checkpoint_of_an_ensemble_whose_parts_do_not_fit(there, capsys, name, how, arguments):
    def change(tensors):
        tensor = tensors.pop(name)
        if how == "shorter":
            tensors[name] = tensor[:-1]
        elif how == "wider":
            tensors[name] = tensor.reshape(1, -1).repeat(2, 2)

    _signed(there / "fit", change)
    assert "is of no ensemble for these data; train the run again" in refused(arguments, capsys)


@pytest.mark.parametrize("name", ["left", "right", "roots", "feature"])
def test_a_branch_of_a_forest_that_leads_nowhere(there, capsys, name):
    def change(tensors):
        (key,) = (key for key in tensors if key.startswith("ensemble.members.") and key.endswith(f".{name}"))
        tensors[key][-1] = 10**15

    _signed(there / "trees", change)
    said = refused(["predict", "trees", "t.csv", "--out", "p.csv"], capsys)
    assert "is of no ensemble for these data; train the run again" in said


@pytest.mark.parametrize(
    ("name", "meant"), [("algoritm", "did you mean algorithm?"), ("a" * 3000, "see cadr train --help")]
)
def test_a_setting_that_there_is_not(there, capsys, name, meant):
    (there / "mine.toml").write_text(f'data = "digits"\nalgorithm = "fixmatch"\n{name} = 3\n')
    said = refused(["train", "mine.toml", "--out", "new"], capsys)
    assert meant in said
    assert len(said) < 300


@pytest.mark.parametrize("text", ["[rows]\na = 3\n", "rows = 3\n", "settings = 3\n[rows.a]\nsetting = 's'\n"])
def test_a_recipe_whose_rows_are_no_tables(there, capsys, text):
    (there / "mine.toml").write_text(text)
    assert "expected tables in [settings] and [rows]" in refused(["train", "mine.toml:a", "--out", "new"], capsys)


@pytest.mark.parametrize("command", [["train"], ["compare", "--algorithms", "fixmatch", "--seeds", "1"]])
def test_a_recipe_of_data_that_are_no_name(there, capsys, command):
    (there / "mine.toml").write_text("[rows]\na = { data = 3, algorithm = 'fixmatch' }\n")
    said = refused([command[0], "mine.toml:a", *command[1:], "--out", "new"], capsys)
    assert "expected the name of data, got 3" in said


RECORDS = {
    "a confusion matrix of other classes": ("evaluation", "confusion", [[1, 2], [3, 4]]),
    "a confusion matrix without a row": ("evaluation", "confusion", [[1, 0, 0], [0, 1, 0]]),
    "a confusion matrix of words": ("evaluation", "confusion", [["a"] * 3] * 3),
    "a confusion matrix that is empty": ("evaluation", "confusion", [[0] * 3] * 3),
    "an accuracy that is a list": ("evaluation", "accuracy", []),
    "an accuracy without a number": ("evaluation", "accuracy", float("nan")),
    "too few recalls": ("evaluation", "recall", [50.0]),
    "a part that is a number": ("evaluation", "on", 3),
    "too many shares": ("train", "prior", [0.25] * 4),
    "a share that is unknown": ("train", "prior", [0.5, None, 0.5]),
    "a threshold that is a word": ("train", "thresholds", ["high", 0.5, 0.5]),
    "a loss too large": ("train", "loss", 10**400),
    "a clock that is a word": ("train", "timing", {"seconds": "long"}),
    "a step that is a word": ("train", "step", "7"),
}


@pytest.mark.parametrize("what", RECORDS)
def test_records_that_no_run_writes(there, capsys, what):
    kind, name, value = RECORDS[what]
    path = there / "net" / "metrics.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    last = next(record for record in reversed(records) if record["kind"] == kind)
    last[name] = value
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert "metrics.jsonl" in refused(["report", "net", "--out", "r.html"], capsys)
    assert not (there / "r.html").exists()
