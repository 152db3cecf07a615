"""docs/convergence.md and its figure, from convergence.json alone.

python benchmarks/convergence_page.py
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cells import markdown, mean_and_sd  # noqa: E402
from benchmarks.convergence import CHOSEN, PROVING, RECORD, TRIED, Trial, key  # noqa: E402
from benchmarks.explain import explain  # noqa: E402

PAGE = ROOT / "docs" / "convergence.md"
FIGURE = PAGE.with_suffix(".svg")
FOUND = 50.0  # percent of the rarest class
SHORT = ("SGD, 250 steps", "Muon, 250 steps")
Runs = list[dict[str, Any]]


def of(record: dict[str, Any], stage: str, problem: str, trial: Trial) -> Runs:
    """Of one trial, seed after seed."""
    begin = key(stage, problem, trial, 0).rpartition("|")[0]
    return [run for name, run in record["runs"].items() if name.startswith(begin)]


def followed(record: dict[str, Any]) -> dict[str, Runs]:
    """The runs of the figure: draws whose course was noted with both optimisers."""
    by_name = {trial.name: trial for trial in CHOSEN}
    noted = {name: {n.rpartition("|")[2]: r for n, r in _named(record, by_name[name]) if r["curve"]} for name in SHORT}
    both = [seed for seed in noted[SHORT[0]] if seed in noted[SHORT[1]]]
    return {name: [runs[seed] for seed in both] for name, runs in noted.items()}


def _named(record: dict[str, Any], trial: Trial) -> list[tuple[str, dict[str, Any]]]:
    begin = key("prove", "digits", trial, 0).rpartition("|")[0]
    return [(name, run) for name, run in record["runs"].items() if name.startswith(begin)]


def found_at(runs: Runs) -> str:
    """The step at which half of the rarest class was first recognised, the median."""
    never = float("inf")
    steps = [next((step for step, recall in run["rarest"] if recall >= FOUND), never) for run in runs]
    middle = statistics.median(steps)
    return f"at step {middle:g}" if middle < never else "not within the run"


def proved(record: dict[str, Any], problem: str) -> str:
    lines = []
    for trial in CHOSEN:
        runs = of(record, "prove", problem, trial)
        if not runs:
            continue
        accuracy = [run["accuracy"] for run in runs]
        mean_gm = f"{statistics.fmean(run['gm'] for run in runs):.1f}"
        seconds = f"{statistics.fmean(run['seconds'] for run in runs):.1f}"
        lines.append([trial.name, str(len(runs)), mean_and_sd(accuracy), f"{min(accuracy):.1f}", mean_gm, seconds])
    header = ["", "seeds", "accuracy", "worst", "geometric mean", "processor s"]
    return markdown(header, lines)


def pairs(record: dict[str, Any], problem: str, one: Trial, other: Trial) -> tuple[float, int, int]:
    """How far the second is ahead in the mean, in how many of how many seeds."""
    differences = [
        record["runs"][key("prove", problem, other, seed)]["accuracy"] - run["accuracy"]
        for seed in range(1000)
        if (run := record["runs"].get(key("prove", problem, one, seed)))
        and key("prove", problem, other, seed) in record["runs"]
    ]
    return statistics.fmean(differences), sum(d > 0 for d in differences), len(differences)


def tried(record: dict[str, Any]) -> str:
    lines = []
    for trial in TRIED:
        runs = of(record, "choose", "digits", trial)
        if runs:
            values = ", ".join(f"{run['accuracy']:.1f}" for run in runs)
            mean = f"{statistics.fmean(run['accuracy'] for run in runs):.1f}"
            lines.append([trial.name, trial.expected, mean, values])
    return markdown(["changed", "expected", "accuracy", "by seed"], lines)


def evenness(record: dict[str, Any], name: str) -> float:
    """The mean singular value of an update, as a share of the largest, over the points of the run."""
    return statistics.fmean(statistics.fmean(update) for _, update, _ in record["spectra"][name])


def page(record: dict[str, Any]) -> str:
    by_name = {trial.name: trial for trial in CHOSEN}
    same, won, of_all = pairs(record, "digits", by_name["SGD, 250 steps"], by_name["Muon, 250 steps"])
    half, _, _ = pairs(record, "digits", by_name["SGD, 500 steps"], by_name["Muon, 250 steps"])
    half_points, where = f"{abs(half):.1f}", "ahead" if half >= 0 else "behind"
    of_sgd, of_muon = (f"{evenness(record, name):.2f}" for name in ("SGD", "Muon"))
    course = followed(record)
    draws, late, early = len(course[SHORT[0]]), found_at(course[SHORT[0]]), found_at(course[SHORT[1]])
    few = " (too few draws to prove it)" if draws < len(PROVING) else ""
    of_table = ""
    if len(of(record, "prove", "digits as a table", CHOSEN[0])) == len(PROVING):
        of_table = f"""The same digits as rows of 64 numbers, and a multilayer perceptron:

{proved(record, "digits as a table")}

"""
    return f"""# Fewer steps to the same accuracy

Where labels are few, the steps are where the time goes, not the milliseconds of a step. `--optimiser muon` needs
fewer of them, and `--minutes 3` uses it. This page says what that is worth, why, and what was tried. It is written
by `python benchmarks/convergence_page.py` from [a record](../benchmarks/convergence.json) of runs on a CPU; the
same comparison on CIFAR-10 waits for a GPU and [has not been run yet](../recipes/fast.toml).

## What it is worth

CADR on handwritten digits, 50 labels of the most frequent class and one of the rarest, a small convolutional
network. At 250 steps Muon is ahead by {same:.1f} points in the mean, in {won} of {of_all} draws of labels. With
half as many steps as SGD it is {half_points} points {where}.

{proved(record, "digits")}

{of_table}Accuracy (%) on the test images at the last step, mean ± standard deviation over the seeds.

![Accuracy, the rarest class and used pseudo-labels over time, and the singular values of updates](convergence.svg)

## Why

SGD's update of a kernel is nearly as thin as its gradient: a few directions, those in which the many labels of the
frequent classes agree, are many times as long as all others. In the run of the figure the mean singular value of an
update of the middle kernel is {of_sgd} of the largest with SGD, and {of_muon} with Muon, which makes an update's
directions about equally long. What tells a rare class from its neighbours is in few examples, so that its direction
is a short one: Muon follows it as far as the others. In the {draws} draws of the figure half of the class with one
label is recognised {early} with Muon, and {late} with SGD (the median){few}.

That the short directions are those of rare classes has not been measured by itself.

## The rule

- Muon (Jordan et al., 2024) moves the kernels of hidden layers, SGD the first convolution, the last layer, biases
  and norms ([source](../src/cadr/optim/muon.py)).
- The learning rate falls to zero along half a turn of the cosine, and the average of the weights covers a twentieth
  of the run, a thousand steps at most.
- `--minutes M` sets the run up, times some steps and one evaluation for three hundredths of the time, and takes as
  many steps as go into what is left; evaluations get a tenth at most. The number of steps is then written into the
  run's config.toml: a run that is continued is the same run.

## What was tried

Digits, 250 steps unless said otherwise, accuracy (%) on 260 training images held out from both streams, with seeds
that no result has. A row with one number by seed is one run, and draws differ by as much as most rows do: it says
what to try next, not what is better. First of all the end of the schedule, where falling to a fifth was ahead of the
rule's falling to zero.

{tried(record)}
"""


def draw(record: dict[str, Any], out: Path) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(16, 3.6), layout="constrained")
    for name, runs in followed(record).items():
        label = name.split(",")[0]
        for axis, what in zip(axes, ("curve", "rarest", "used"), strict=False):
            steps = [step for step, _ in runs[0][what]]
            values = np.array([[value for _, value in run[what]] for run in runs], dtype=float)
            error = values.std(0, ddof=1) / len(runs) ** 0.5
            axis.plot(steps, values.mean(0), label=label)
            axis.fill_between(steps, values.mean(0) - error, values.mean(0) + error, alpha=0.2)
        spectrum = np.mean([update for _, update, _ in record["spectra"][label]], axis=0)
        axes[3].plot(range(1, len(spectrum) + 1), spectrum, label=label)
    titles = ("accuracy, %", "recall of the class with one label, %", "unlabelled rows with a used pseudo-label, %")
    for axis, title in zip(axes, titles, strict=False):
        axis.set(xlabel="step", title=title, ylim=(0, 100))
    axes[3].set(xlabel="singular value, by size", title="an update's, as shares of the largest", ylim=(0, 1.05))
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[0].legend(loc="lower right")
    plt.rcParams["svg.hashsalt"] = "cadr"
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    explain(__doc__)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    PAGE.write_text(page(record), encoding="utf-8")
    draw(record, FIGURE)


if __name__ == "__main__":
    main()
