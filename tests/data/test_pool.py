import dataclasses

import numpy as np
import pytest

from cadr.data.description import bar
from cadr.errors import DataError
from tests.data.loose import Pool, open_data
from tests.data.writers import tiny


def features(n=6, d=3, **changes):
    examples = np.arange(n * d, dtype=np.float32).reshape(n, d)
    return Pool(**{"examples": examples, "labels": np.arange(n) % 2, "class_names": ("no", "yes"), **changes})


def test_kinds_and_counts():
    pool = features(labels=np.array([0, -1, 1, 1, -1, -1]))
    assert (pool.kind, pool.num_classes, pool.num_labelled, pool.num_streamed) == ("features", 2, 3, 6)
    assert pool.num_unlabelled == 3
    assert pool.counts.tolist() == [1, 2]
    x, y = tiny(20, side=8)
    images = Pool(x, y, tuple("abcdefghij"), stream=np.arange(5))
    assert (images.kind, images.num_streamed) == ("image", 5)


def test_nothing_can_be_changed():
    pool = features()
    for array in (pool.examples, pool.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        pool.name = "other"


def test_arrays_are_not_copied_and_the_callers_stay_writable():
    x, y = tiny(20)
    pool = Pool(x, y, tuple("abcdefghij"))
    assert np.shares_memory(pool.examples, x)
    assert np.shares_memory(pool.labels, y)
    x[0] = 0


def test_hash_sees_what_training_sees():
    pool = features()
    assert pool.sha256 == features().sha256
    assert pool.sha256 == dataclasses.replace(pool, name="another name").sha256
    changed = pool.examples.copy()
    changed[5, 2] += 1
    others = [
        dataclasses.replace(pool, examples=changed),
        dataclasses.replace(pool, labels=np.array([0, 1, 0, 1, 0, -1])),
        dataclasses.replace(pool, class_names=("non", "oui")),
        dataclasses.replace(pool, stream=np.arange(6)),
        dataclasses.replace(pool, test_examples=pool.examples, test_labels=pool.labels),
    ]
    assert len({pool.sha256, *(other.sha256 for other in others)}) == 6


def test_hash_does_not_depend_on_memory_layout(monkeypatch):
    x, y = tiny(30, side=8)
    pool = Pool(x, y, tuple("abcdefghij"))
    strided = Pool(np.asfortranarray(x), y, tuple("abcdefghij"))
    assert pool.sha256 == strided.sha256
    monkeypatch.setattr("cadr.data.pool.CHUNK", 500)
    assert Pool(x, y, tuple("abcdefghij")).sha256 == pool.sha256


def test_digits_hash_is_pinned():
    """The embedded digits, their test part and everything derived from them stay what they are."""
    pool = open_data("digits")
    assert pool.sha256 == "cc8b7d5a820305c3123f6e7704895f15a37c232307b847a46c33c378a0c78d20"
    assert pool.examples.shape == (1267, 8, 8, 3)
    assert np.bincount(pool.test_labels).tolist() == [53] * 10
    assert (pool.examples[..., 0] == pool.examples[..., 2]).all()
    assert pool.examples.max() == 255


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    data = load_digits()
    pool = open_data("digits")
    ours = np.concatenate([pool.examples, pool.test_examples])[..., 0]
    restored = np.rint(ours / 255 * 16).astype(int).reshape(1797, -1)
    labels = np.concatenate([pool.labels, pool.test_labels])
    key = np.concatenate([restored, labels[:, None]], axis=1)
    expected = np.concatenate([data.data.astype(int), data.target[:, None]], axis=1)
    assert sorted(map(tuple, key)) == sorted(map(tuple, expected))


def test_describe_is_a_table_with_bars():
    lines = features(labels=np.array([0, -1, 1, 1, 1, 1]), name="answers").describe().splitlines()
    assert lines[0] == "answers: 6 rows of 3 features, 2 classes; 5 labelled (83.3 %); 1 unlabelled"
    assert lines[3].split() == ["0", "no", "1", "█" * 5]
    assert lines[4].split() == ["1", "yes", "4", "█" * 20]


def test_a_stream_that_was_decided_on_is_described():
    pool = features(labels=np.array([0, -1, 1, 1, 1, 1]), stream=np.array([0, 1, 2]))
    assert pool.describe().splitlines()[0].endswith("5 labelled (83.3 %); 3 in the unlabelled stream")


def test_describe_shows_the_stream_where_the_truth_is_known():
    pool = features(
        labels=np.array([0, -1, 1, -1, -1, -1]), hidden_labels=np.array([0, 1, 1, 1, 0, 1]), stream=np.array([1, 2, 3])
    )
    lines = pool.describe().splitlines()
    assert lines[3].split()[:6] == ["0", "no", "1", "0", "50.00", "%"]
    assert lines[4].split()[:6] == ["1", "yes", "1", "3", "25.00", "%"]


@pytest.mark.parametrize(("share", "drawn"), [(0, ""), (1, "█" * 20), (0.5, "█" * 10), (0.01, "▎"), (1e-6, "▏")])
def test_bars(share, drawn):
    assert bar(share) == drawn


def test_large_mapped_features_are_checked_on_demand(tmp_path, monkeypatch):
    values = np.zeros((100, 3), dtype=np.float32)
    values[70, 1] = np.nan
    np.save(tmp_path / "x.npy", values)
    np.save(tmp_path / "y.npy", np.arange(100) % 2)
    with pytest.raises(DataError, match=r"examples\[70, 1\] is nan"):
        open_data(tmp_path / "x.npy", labels=tmp_path / "y.npy")
    monkeypatch.setattr("cadr.data.pool.EAGER", 1000)
    pool = open_data(tmp_path / "x.npy", labels=tmp_path / "y.npy")  # nothing but the labels has been read
    with pytest.raises(DataError, match=r"examples\[70, 1\] is nan"):
        pool.check_finite()


def test_letting_go_of_mapped_pages_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("cadr.data.pool.CHUNK", 64)
    np.save(tmp_path / "x.npy", np.zeros((100, 3), dtype=np.float32))
    for mode in ("r", "c", "r+"):
        mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
        if mode != "r":
            mapped[7, 1] = 5.0  # in "c" only this process has it, and pages let go would be lost
        pool = features(examples=mapped, labels=np.arange(100) % 2)
        pool.check_finite()
        assert pool.sha256
        assert pool.examples[7, 1] == (0.0 if mode == "r" else 5.0)


def test_hidden_labels_may_not_contradict():
    with pytest.raises(DataError, match="disagree"):
        features(hidden_labels=np.array([1, 1, 0, 1, 0, 1]))


@pytest.mark.parametrize("stream", [[3, 2], [0, 0], [-1, 2], [4, 6], []])
def test_stream_must_be_rows(stream):
    with pytest.raises(DataError, match="rising int64 rows between 0 and 5"):
        features(stream=np.array(stream, dtype=np.int64))
