"""Where the system gives a process no more threads, images are read one after another."""

import threading

import numpy as np
import pytest

from cadr.data.sources.images import decode_all
from tests.report.own_runs import write_images


@pytest.mark.parametrize("allowed", [0, 1])
def test_images_are_read_without_threads(allowed, tmp_path, monkeypatch):
    real, begun = threading.Thread.start, list[threading.Thread]()

    def start(thread):
        if len(begun) == allowed:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        real(thread)

    images = write_images(tmp_path, 12)
    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert np.array_equal(decode_all(sorted(tmp_path.iterdir())), images)
    assert len(begun) == allowed
