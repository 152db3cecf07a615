"""What waits for a GPU names rows and flags that there are, and can begin."""

import shutil
import subprocess

import pytest

from benchmarks import reproduce
from tests.benchmarks.test_reproduce import RECIPE, TINY

QUEUE, TUNE = (reproduce.ROOT / "benchmarks" / f"gpu_{name}.txt" for name in ("queue", "tune"))


def test_the_headline_comes_first():
    first = reproduce.read_plan(QUEUE)[0]
    assert first.name == "fast-cifar10-gamma50-cadr-minutes3-seed1"


def test_settings_are_chosen_on_held_out_images_with_seeds_of_no_result():
    tuned, shown = reproduce.read_plan(TUNE), reproduce.read_plan(QUEUE)
    assert all(job.overrides["held_out"] == 5000 for job in tuned)
    assert not any("held_out" in job.overrides for job in shown)
    assert not {job.seed for job in tuned} & {job.seed for job in shown}


def test_ten_draws_of_three_imbalances_are_asked_for():
    names = {job.name for job in reproduce.read_plan(QUEUE)}
    for gamma in (20, 50, 100):
        for method in ("cadr", "cadr-renaming", "cap-freematch-resampling", "fixmatch"):
            for seed in range(1, 11):
                assert f"fast-cifar10-gamma{gamma}-{method}-steps32768-seed{seed}" in names


def test_a_dry_run_says_what_cannot_begin(tmp_path, monkeypatch, capsys):
    recipe = tmp_path / "small.toml"
    broken = 'small-broken = { setting = "small", algorithm = "cadr", target_prior = [1.0, 2.0] }\n'
    recipe.write_text(RECIPE.replace("small-later", "#") + broken)
    monkeypatch.setattr(reproduce, "RECIPES", [recipe])
    (tmp_path / "plan.txt").write_text(f"small-cadr --seeds 1 2 {' '.join(TINY)}\nsmall-cadr --beta 1.0 --steps 9\n")
    assert reproduce.main(["rest", "--plan", str(tmp_path / "plan.txt"), "--dry"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == [
        "small-cadr-batch-4-ratio-2-steps6-seed1",
        "small-cadr-beta-1.0-steps9-seed1",
    ]
    (tmp_path / "plan.txt").write_text("small-broken\n")
    assert reproduce.main(["rest", "--plan", str(tmp_path / "plan.txt"), "--dry"]) == 1
    assert "target_prior must have one number per class" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_script_is_one():
    script = reproduce.ROOT / "benchmarks" / "gpu_queue.sh"
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
