"""Several processes that share a run: it is the run of one process, to rounding, whatever their number."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch
from torch import nn

from cadr.models.synced_norm import synchronise
from cadr.training import checkpoint
from tests.training import rank, tiny, unlike_ranks

METHODS = ("cadr", "mixmatch", "flexmatch", "crest", "darp")
STEPS = 9


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """By one, two and three ranks, of which none divides a batch of five. `half`: first by three, then by two."""
    folder: Path = tmp_path_factory.mktemp("ranks")
    for method in METHODS:
        rank.work(folder / "1" / method, STEPS, STEPS, method)
    for count, stop in ((3, 4), (2, STEPS)):
        jobs = [f"{folder / str(count)}:{STEPS}:{method}" for method in METHODS]
        jobs += [f"{folder / 'half'}:{stop}:{method}" for method in ("cadr", "crest")]
        found = rank.ends(rank.start(count, str(STEPS), *jobs))
        assert {status for status, _ in found} == {0}, found
        assert int(tiny.tensors(folder / "half" / "cadr")["step"]) == stop
    return folder


def same(one: Path, other: Path) -> None:
    """Equal to rounding: all that is saved but the velocity, some of which is nothing but rounding."""
    ours, theirs = tiny.tensors(one), tiny.tensors(other)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        if not name.startswith("velocity."):
            torch.testing.assert_close(theirs[name], tensor, rtol=1e-3, atol=1e-5)
    for record, by_others in zip(tiny.metrics(one), tiny.metrics(other), strict=True):
        assert record.keys() == by_others.keys()
        for key, value in record.items():
            if isinstance(value, float):
                assert by_others[key] == pytest.approx(value, rel=1e-3), key
            elif key in ("confusion", "prior", "mask", "adopted"):
                torch.testing.assert_close(torch.tensor(by_others[key]), torch.tensor(value), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [2, 3])
def test_one_seed_is_one_run_whatever_the_number_of_ranks(runs, count, method):
    same(runs / "1" / method, runs / str(count) / method)


@pytest.mark.parametrize("method", ["cadr", "crest"])
def test_a_run_goes_on_with_another_number_of_ranks(runs, method):
    same(runs / "1" / method, runs / "half" / method)


def test_a_rank_that_dies_ends_the_attempt_and_nothing_that_was_saved_is_lost(tmp_path):
    ranks = rank.start(2, "100000", f"{tmp_path}:100000:cadr")
    while not (tmp_path / "cadr" / checkpoint.CURRENT).exists():
        assert ranks[0].poll() is None
    ranks[1].send_signal(signal.SIGKILL)
    (status, said), _ = rank.ends(ranks)
    assert status != 0
    assert "Rank 0 lost the other ranks" in said
    assert "continues from the last checkpoint" in said
    tensors, facts = checkpoint.load(tmp_path / "cadr" / checkpoint.CURRENT)
    assert int(tensors["step"]) > 0
    assert facts["logged"] == int(tensors["step"])


def test_ranks_that_are_not_alike_or_have_nothing_to_do_are_refused(tmp_path):
    """One sentence of the first rank each time, after at most the words of the plan."""
    (status, first), (other_status, second) = rank.ends(
        rank.start(2, str(tmp_path), *unlike_ranks.WRONG, module="tests.training.unlike_ranks")
    )
    assert (status, other_status) == (0, 0), first + second
    sentences = [line for line in first.splitlines() if line.startswith("cadr: ")]
    assert [line.partition(" ")[2].partition("; ")[0] for line in sentences] == [
        "The data on rank 1 is not that on rank 0",
        "The version of cadr on rank 1 is not that on rank 0",
        "The configuration on rank 1 is not that on rank 0",
        "2 ranks share 1 labelled rows a step, so that some would have none",
        "minutes are measured by one process",
        "The ensemble is fitted by one process",
        sentences[-1].partition(" ")[2].partition("; ")[0],
    ]
    assert sentences[-1].startswith("cadr: On rank 1: nowhere.npz")
    assert second == ""
    assert not (tmp_path / "run").exists()


def test_without_other_ranks_a_synchronised_norm_is_the_plain_one():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))
    names = list(plain.state_dict())
    x = torch.randn(4, 2, 5, 5)
    expected = plain(x)
    synchronise(plain)
    assert isinstance(plain[1], nn.BatchNorm2d)
    assert list(plain.state_dict()) == names
    torch.testing.assert_close(plain(x), expected, rtol=0, atol=0)
