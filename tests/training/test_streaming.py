"""Data that stay in their file are the same run as data in memory, whatever reads them and when."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from cadr.algorithms import ALGORITHMS
from cadr.augment import FeatureViews, ImageViews
from cadr.config import Training
from cadr.data import shuffle
from cadr.data.pool import Pool
from cadr.errors import DataError
from cadr.optim import SGD
from cadr.training import streamed
from cadr.training.feed import Inputs, Streaming
from cadr.training.phases import step_phases
from cadr.training.step import Step
from cadr.training.streamed import Every, Streamed
from tests.training import tiny
from tests.training.test_step import images, network

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """As if data of any size were too large."""
    monkeypatch.setattr(streamed, "available", lambda: 1)


def mapped(pool: Pool, folder: Path) -> Pool:
    """The same with examples and labels in files."""
    found = {}
    for name in ("examples", "labels"):
        np.save(folder / f"{name}.npy", getattr(pool, name))
        found[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
    return dataclasses.replace(pool, **found)


def stepped(pool: Pool, method: str = "cadr", views=None) -> Step:
    inputs, algorithm = Inputs.of(pool, CPU), ALGORITHMS[method]()
    training = Training(steps=12, batch=4, ratio=3, seed=5)
    views = views or (ImageViews() if inputs.is_image else FeatureViews())
    torch.manual_seed(0)
    model = network() if inputs.is_image else torch.nn.Linear(inputs.examples.shape[1], inputs.num_classes)
    phases = step_phases(algorithm, views, 12)
    return Step(model, algorithm, views, inputs, SGD(), training, 7, phases=phases)


@pytest.mark.parametrize(("method", "views"), [("cadr", None), ("flexmatch", None), ("fixmatch", "ctaugment")])
def test_pictures_in_a_file_are_the_same_run(tmp_path, method, views):
    views = ImageViews(strong=views) if views else None
    plain, streaming = stepped(images(), method, views), stepped(mapped(images(), tmp_path), method, views)
    assert isinstance(streaming.feed, Streaming)
    assert not isinstance(plain.feed, Streaming)
    for n in (5, 7):
        plain.advance(n)
        streaming.advance(n)
    for name, value in plain.state.tensors().items():
        assert torch.equal(streaming.state.tensors()[name], value), name


def test_features_in_a_file_are_the_same_run(tmp_path):
    """Standardised by the same numbers: of fewer rows than the sample has, by all."""
    pool = dataclasses.replace(tiny.pool(), test_examples=None, test_labels=None, hidden_labels=None)
    plain, streaming = stepped(pool), stepped(mapped(pool, tmp_path))
    assert isinstance(streaming.inputs.stream, Every)
    assert streaming.inputs.facts(9).num_examples == plain.inputs.facts(9).num_examples == 90
    for n in (5, 7):
        plain.advance(n)
        streaming.advance(n)
    for name, value in plain.state.tensors().items():
        torch.testing.assert_close(streaming.state.tensors()[name], value, rtol=1e-5, atol=1e-6)


def test_a_step_that_looks_ahead_reads_the_rows_of_the_next(tmp_path):
    plain, ahead = stepped(images()), stepped(mapped(images(), tmp_path))
    ahead.start(5)
    ahead.ready = ahead.feed.batch(ahead.state.step)
    ahead.compute = ahead.compute_ahead  # type: ignore[method-assign]
    for n in (5, 7):
        plain.advance(n)
        ahead.advance(n)
    for name, value in plain.state.tensors().items():
        assert torch.equal(ahead.state.tensors()[name], value), name


def test_rows_are_gathered_by_number(tmp_path):
    pool = mapped(images(), tmp_path)
    source = Streamed(pool.examples, "images", CPU)
    rows = torch.tensor([7, 0, 39, 7])
    assert torch.equal(source[rows], torch.tensor(np.asarray(pool.examples))[rows])


def test_numbers_that_are_not_finite_are_found_when_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLE", 4)
    pool = tiny.pool()
    examples = pool.examples.copy()
    examples[41, 2] = np.nan  # not one of the four that the sample takes
    np.save(tmp_path / "x.npy", examples)
    monkeypatch.setattr("cadr.data.pool.EAGER", 0)
    bad = dataclasses.replace(
        pool, examples=np.load(tmp_path / "x.npy", mmap_mode="r"), test_examples=None, test_labels=None
    )
    step = stepped(bad)
    with pytest.raises(DataError, match="row 41 holds a number that is not finite"):
        step.advance(7)  # nearly an epoch


def test_data_in_memory_or_that_fit_are_not_streamed(tmp_path, monkeypatch):
    assert isinstance(Inputs.of(tiny.pool(), CPU).examples, torch.Tensor)  # there already
    monkeypatch.setattr(streamed, "available", lambda: 2**40)
    assert isinstance(Inputs.of(mapped(tiny.pool(), tmp_path), CPU).examples, torch.Tensor)


def test_a_run_says_that_it_streams(tmp_path):
    from cadr.training import train

    pool = mapped(dataclasses.replace(tiny.pool(test=False), hidden_labels=None), tmp_path)
    settings = dataclasses.replace(
        tiny.config(steps=6), source=dataclasses.replace(tiny.config().source, validation=0.0)
    )
    records = list(train(settings, tmp_path / "run", pool=pool))
    assert "are read from their file as steps need them" in records[0]["message"]
    assert records[-1]["kind"] == "finished"


@pytest.mark.parametrize("n", [2, 1000, 4097, 1 << 16])
def test_an_order_found_place_by_place_holds_every_row_once_an_epoch(n):
    epochs = shuffle.permuted(7, shuffle.UNLABELLED, n, np.arange(2 * n)).reshape(2, n)
    assert (np.sort(epochs, axis=1) == np.arange(n)).all()


def test_an_order_found_place_by_place_is_a_random_one():
    n = 100_000
    first, second = shuffle.permuted(7, shuffle.UNLABELLED, n, np.arange(2 * n)).reshape(2, n)
    other = shuffle.permuted(8, shuffle.UNLABELLED, n, np.arange(n))
    for a, b in ((first, second), (first, other), (first[:-1], first[1:]), (first, np.arange(n))):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.02  # 6 standard deviations
        assert (a == b).sum() < 10  # one is expected
    halves = (first < n // 2).reshape(100, -1).sum(1)  # of each hundredth of the epoch, how many of the first half
    assert abs(halves - 500).max() < 80  # 5 standard deviations of a draw without replacement


def test_large_orders_do_not_depend_on_where_one_begins_and_cost_no_more():
    n = 10**12
    whole = shuffle.indices(7, shuffle.UNLABELLED, n, 6, 10**9, 10**9 + 4)
    parts = [shuffle.indices(7, shuffle.UNLABELLED, n, 6, 10**9 + k, 10**9 + k + 1) for k in range(4)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert whole.min() >= 0
    assert whole.max() < n
    assert len(np.unique(whole)) == 24
    assert shuffle.indices(1, shuffle.UNLABELLED, 1 << 21, 3, 0, 1).tolist() == [[1507141, 640973, 897055]]
