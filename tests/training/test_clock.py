"""What a run has spent: sums over steps and processes, the highest memory of all, and paces."""

import pytest
import torch

from cadr.algorithms import SimPro
from cadr.config import Config
from cadr.training import checkpoint, clock, train
from tests.training import tiny


@pytest.fixture
def ticking(monkeypatch):
    """A clock of which we turn the hand."""
    now = [100.0]
    monkeypatch.setattr("cadr.training.clock.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(clock, "peak_memory_gib", lambda device: 2.0)
    return now


def test_spent_is_the_sum_over_processes_and_stretches_of_steps(ticking):
    spent = clock.Clock(torch.device("cpu"))
    spent.before = {"seconds": 50.0, "step_seconds": 30.0, "peak_memory_gib": 3.0}
    for seconds in (4.0, 6.0):
        with spent.steps():
            ticking[0] += seconds
        ticking[0] += 1.0
    assert spent.spent() == {"seconds": 62.0, "step_seconds": 40.0, "peak_memory_gib": 3.0}
    expected = {"seconds": 62.0, "steps_per_second": 2.0, "images_per_second": 20.0, "memory_gib": 3.0}
    assert spent.timing(80, images=10) == expected
    spent.before["peak_memory_gib"] = 1.0
    assert spent.spent()["peak_memory_gib"] == 2.0


def test_a_continued_run_adds_to_what_was_spent_before(tmp_path):
    records = train(tiny.config(steps=20), tmp_path, pool=tiny.pool())
    while next(records)["step"] < 10:
        pass
    records.close()
    tensors, facts = checkpoint.load(tmp_path / checkpoint.CURRENT)
    before = {"seconds": 1000.0, "step_seconds": 500.0, "peak_memory_gib": 3000.0}
    checkpoint.save(tmp_path, tensors, facts | {"before": before})
    spent = tiny.finish(tiny.config(steps=20), tmp_path)["result"]
    assert 1000 < spent["seconds"] < 1100
    assert 25_000 < spent["ms_per_step"] < 27_500
    assert spent["peak_memory_gib"] == 3000


def test_all_views_count_as_images(tmp_path):
    settings = tiny.config()
    settings = Config("clouds", SimPro(), model=settings.model, training=settings.training)
    timings = [r["timing"] for r in train(settings, tmp_path, pool=tiny.pool()) if r["kind"] == "train"]
    images = 8 * 2 + 16 * (1 + 2)  # labelled rows in two views, unlabelled ones in a weak and two strong ones
    assert timings[-1]["images_per_second"] / timings[-1]["steps_per_second"] == pytest.approx(images, rel=1e-2)
