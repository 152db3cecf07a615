"""The whole of CIFAR-10: the shared pack against official-format files written from it, pixel for pixel."""

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.data.loose import PROTOCOLS, make_split, open_data
from tests.data.writers import write_cifar10_binary, write_cifar10_python

SHARED = Path(__file__).resolve().parents[3] / "shared"
TOOL = SHARED / "tools" / "unpack_cifar10.py"

pytestmark = pytest.mark.skipif(not TOOL.is_file(), reason="the shared CIFAR-10 pack is not beside this checkout")


# The splits of the paper's three settings with seed 1. These may never change: records depend on them.
GOLDEN = {
    20: "1731d78e7edf228082fd12b72992e6d78063daf7394395c5b0e4c17386baae1d",
    50: "cd50cfe3d8c0d2499780db328201368069eefe600c4e86daeb4e81bd3b161816",
    100: "c91ffc6e8c33a203dfd228640c1200430d09944ac2eed810ef0fc793f3c01f4f",
}


def test_official_files_hold_the_same(tmp_path):
    (tmp_path / "pack").mkdir()
    runpy.run_path(str(TOOL))["main"](str(tmp_path / "pack" / "cifar10.npz"))
    expected = open_data("cifar10", root=tmp_path / "pack")
    arrays = (expected.examples, expected.labels, expected.test_examples, expected.test_labels)
    for write, name in ((write_cifar10_python, "cifar-10-batches-py"), (write_cifar10_binary, "cifar-10-batches-bin")):
        write(tmp_path / name, *arrays)
        pool = open_data("cifar10", root=tmp_path / name)
        found = (pool.examples, pool.labels, pool.test_examples, pool.test_labels)
        for ours, theirs in zip(found, arrays, strict=True):
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs)
        shutil.rmtree(tmp_path / name)
    for gamma, digest in GOLDEN.items():
        assert make_split(expected, PROTOCOLS["longtail"](n_max=gamma, gamma=gamma), seed=1).sha256 == digest
