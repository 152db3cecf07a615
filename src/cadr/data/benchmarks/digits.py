"""scikit-learn's embedded handwritten digits: 1,797 images of 8×8, there on every machine."""

from __future__ import annotations

import numpy as np

from cadr.data.pool import Pool
from cadr.data.shuffle import TEST, first
from cadr.utils.optional_imports import optional_import

TEST_PER_CLASS = 53


def digits() -> Pool:
    """As RGB images. A fixed class-balanced part (53 of each digit) is for testing."""
    data = optional_import("sklearn.datasets", "the data set digits").load_digits()
    grey = np.rint(data.images * (255 / 16)).astype(np.uint8)  # stored as 0 … 16
    images = np.repeat(grey[..., None], 3, axis=-1)
    labels = data.target.astype(np.int64)
    test = first(labels, np.full(10, TEST_PER_CLASS), seed=0, stream=TEST)
    train = np.setdiff1d(np.arange(len(labels)), test)
    return Pool(
        examples=images[train],
        labels=labels[train],
        class_names=tuple(str(d) for d in range(10)),
        name="digits",
        test_examples=images[test],
        test_labels=labels[test],
    )
