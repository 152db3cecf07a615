"""What commands say of all rows, where the labels are one's own: weighted accuracy, and shares that cannot be."""

import json
import re

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data import from_arrays
from cadr.diagnosis.diagnose import diagnose
from cadr.report import write_report
from tests.report.reports import plain

RUN = ["--batch", "16", "--ratio", "4", "--evaluations", "2", "--model", "mlp", "--hidden", "16", "--device", "cpu"]
TOLD = ["--target-prior", "1", "9"]  # nine in ten are of the class that one in ten is of
CONTRADICTED = "Predicted shares of the unlabelled rows contradict cadr diagnose: '0' "
WEIGHTED = r"Weighted by 1/propensity, so that the classes count as in all rows, accuracy is ([\d.]+) %\."


def arrays():
    """Two clouds, nine to one; of the larger one a tenth is labelled, of the smaller one half."""
    random = np.random.default_rng(0)
    truth = np.arange(400) % 10 // 9
    x = (random.normal(size=(400, 3)) + 4.0 * truth[:, None]).astype(np.float32)
    return x, np.where(random.random(400) < np.array([0.1, 0.5])[truth], truth, -1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("own")
    x, y = arrays()
    np.savez(found / "mine.npz", x=x, y=y)
    return found


@pytest.fixture(scope="module")
def misled(folder):
    """A run that was told wrong shares."""
    assert main(["train", str(folder / "mine.npz"), *TOLD, *RUN, "--steps", "60", "--out", str(folder / "run")]) == 0
    return folder / "run"


def by_hand(run):
    """Accuracy on the held-out labels, each counting one over the propensity of its class."""
    x, y = arrays()
    phi = np.array([c.propensity for c in diagnose(from_arrays(x, y)).classes])
    last = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][-1]
    confusion = np.array(last["confusion"])
    assert (
        confusion.sum(1).tolist() == np.bincount(y[json.loads((run / "validation.json").read_text())["rows"]]).tolist()
    )
    return 100 * (confusion.diagonal() / phi).sum() / (confusion.sum(1) / phi).sum()


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_run_says_what_it_comes_to_on_all_rows(misled, capsys, command):
    """Also a finished one."""
    arguments = {"train": [str(misled.parent / "mine.npz"), *TOLD, *RUN, "--steps", "60", "--out"], "evaluate": []}
    assert main([command, *arguments[command], str(misled)]) == 0
    said = capsys.readouterr().out
    found = re.search(WEIGHTED, said)
    assert found is not None
    assert float(found[1]) == pytest.approx(by_hand(misled), abs=0.051)
    assert f"Warning: {CONTRADICTED}" in said


def test_the_shares_are_those_that_predict_writes(misled, tmp_path, capsys):
    assert main(["predict", str(misled), str(misled.parent / "mine.npz"), "--out", str(tmp_path / "p.csv")]) == 0
    assert "contradict" not in capsys.readouterr().out  # it may be other data
    lines = (tmp_path / "p.csv").read_text().splitlines()
    at = lines[0].split(",").index("predicted")
    predicted = np.array([line.split(",")[at] for line in lines[1:]])
    share = 100 * (predicted[arrays()[1] == -1] == "0").mean()
    assert main(["evaluate", str(misled)]) == 0
    assert f"{CONTRADICTED}{share:.1f} % (estimated " in capsys.readouterr().out


def test_the_report_says_it_too(misled, tmp_path):
    write_report([misled], tmp_path / "r.html", device="cpu")
    words = plain((tmp_path / "r.html").read_text())
    assert CONTRADICTED in words
    assert f"accuracy of run is {by_hand(misled):.1f} %" in words


def test_methods_that_take_no_target_are_looked_at_too(folder, tmp_path, capsys):
    train = ["train", str(folder / "mine.npz"), "--algorithm", "supervised", *RUN, "--steps", "60"]
    assert main([*train, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert re.search(WEIGHTED, said)
    assert "contradict" not in said


def test_nothing_is_said_of_labels_that_were_taken_away(tmp_path, capsys):
    x, _ = arrays()
    np.savez(tmp_path / "whole.npz", x=x, y=np.arange(400) % 10 // 9)
    flags = ["--protocol", "mcar", "--n", "60", "--algorithm", "supervised", *RUN, "--steps", "4"]
    assert main(["train", str(tmp_path / "whole.npz"), *flags, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "1/propensity" not in said
    assert "contradict" not in said


def test_test_labels_are_not_weighted(tmp_path, capsys):
    """They are no part of the labels, and nobody says that they are biased; predicted shares are looked at."""
    x, y = arrays()
    np.savez(tmp_path / "mine.npz", x=x, y=y, x_test=x[:50], y_test=np.arange(50) % 10 // 9)
    flags = [*TOLD, *RUN, "--steps", "60", "--out", str(tmp_path / "run")]
    assert main(["train", str(tmp_path / "mine.npz"), *flags]) == 0
    said = capsys.readouterr().out
    assert "1/propensity" not in said
    assert CONTRADICTED in said


def test_nothing_is_said_where_data_are_gone(misled, folder, tmp_path, capsys):
    (folder / "mine.npz").rename(folder / "elsewhere.npz")
    try:
        train = ["train", str(folder / "mine.npz"), *TOLD, *RUN, "--steps", "60", "--out", str(misled)]
        assert main(train) == 0
        assert "1/propensity" not in capsys.readouterr().out
    finally:
        (folder / "elsewhere.npz").rename(folder / "mine.npz")


def test_a_comparison_says_it_of_every_method(misled, tmp_path, capsys):
    flags = ["--algorithms", "supervised", "cadr", "--seeds", "1", *TOLD, *RUN, "--steps", "60"]
    assert main(["compare", str(misled.parent / "mine.npz"), *flags, "--out", str(tmp_path / "all")]) == 0
    said = capsys.readouterr().out
    assert "The target is the class prior" not in said  # those given are
    header = next(line for line in said.splitlines() if line.startswith("method "))
    assert re.split("  +", header)[1:3] == ["accuracy, %", "weighted, %"]
    assert header.endswith("shares outside")
    cells = {
        line.split()[0]: re.split("  +", line) for line in said.splitlines() if line.startswith(("Superv", "CADR  "))
    }
    assert float(cells["CADR"][2]) == pytest.approx(by_hand(tmp_path / "all" / "cadr-seed1"), abs=0.051)
    assert (cells["Supervised"][-1], cells["CADR"][-1]) == ("none", "'0', '1'")
    assert "Weighted: a held-out label counts 1/propensity" in said
    assert "Shares outside: classes whose predicted share" in said
