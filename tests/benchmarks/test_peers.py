"""A training script of somebody else's, made up for it, is run as it is and timed."""

import json
import subprocess
import sys

import pytest

from benchmarks import peers

OLD = """
import sys, time
import torch
from torch.utils.data import DataLoader
import beside  # from its own folder
assert sys.argv[1:] == ["--speed", "slow"], sys.argv
device = torch.device("cuda", 0)
assert isinstance(device, torch.device)
model = torch.nn.Linear(2, 1).to(device)
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.ones(40, 2), batch_size=2)
batches = iter(loader)
for step in range(STEPS):
    x = batches.next()  # as it was before PyTorch 1.13
    if step >= 3:
        time.sleep(0.02)
    model(x).sum().backward()
    optimiser.step()
print("the end")
"""


@pytest.fixture
def clone(tmp_path):
    (tmp_path / "train.py").write_text(OLD.replace("STEPS", "20"))
    (tmp_path / "short.py").write_text(OLD.replace("STEPS", "4"))
    (tmp_path / "beside.py").write_text("")
    return tmp_path


def run(clone, script, *more):
    """In a process of its own, with the driver's own part replaced by a number."""
    code = (
        "import sys; from benchmarks import peers; peers.ours = lambda options: 2.0; "
        "sys.argv = ['peers.py', *sys.argv[1:]]; peers.main()"
    )
    command = [sys.executable, "-c", code, "--peer", "old", str(clone), f"{script} --speed slow", "--device", "cpu"]
    out = ["--steps", "5", "--warm", "3", "--out", str(clone / "out.json"), *more]
    return subprocess.run([*command, *out], cwd=peers.ROOT, capture_output=True, text=True)


def test_a_script_is_timed_after_its_first_steps(clone):
    ended = run(clone, "train.py")
    assert ended.returncode == 0, ended.stderr
    record = json.loads((clone / "out.json").read_text())
    assert record["ms"]["ours"] == 2.0
    assert record["ms"]["old"] >= 20  # it sleeps as long in each step that counts
    assert record["commands"] == {"old": "train.py --speed slow"}
    assert "the end" not in ended.stderr
    assert "| old |" in ended.stdout


def test_a_script_that_ends_too_early_leaves_no_record(clone):
    ended = run(clone, "short.py")
    assert ended.returncode == 1
    assert "ended before 3 + 5 steps" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (clone / "out.json").exists()


def test_the_table_says_how_much_faster_ours_is():
    header, _, ours, theirs = peers.lines({"ours": 5.0, "theirs": 100.0}, images=960)
    assert header.startswith("| | ms a step | images a second |")
    assert ours == "| ours | 5.0 | 192,000 | 1.0 × | 1.5 | 2.7 |"
    assert theirs == "| theirs | 100.0 | 9,600 | 20.0 × | 29.1 | 54.6 |"
