import dataclasses
import gzip
import hashlib
from functools import partial

import numpy as np
import pytest

from cadr.data.benchmarks import BENCHMARKS, cifar, fashion_mnist, find, mini_imagenet, stl10
from cadr.data.benchmarks.cifar import CIFAR10, CIFAR100
from cadr.data.benchmarks.container import ChecksumError
from cadr.data.benchmarks.download import verify
from cadr.data.benchmarks.registry import KNOWN, Form, Known
from tests.data.loose import PROTOCOLS, apply, make_split, open_data
from tests.data.writers import (
    binary_batch,
    python2_batch,
    python3_batch,
    tiny,
    write_cifar10_binary,
    write_cifar10_python,
    write_fashion_mnist,
    write_image,
    write_stl10,
    write_tar,
)

X, Y = tiny(50)
X_TEST, Y_TEST = tiny(20, seed=1)
DATA = (X, Y, X_TEST, Y_TEST)


def assert_is_the_data(parts):
    for part, (x, y) in zip(parts, ((X, Y), (X_TEST, Y_TEST)), strict=True):
        assert np.array_equal(part[0], x)
        assert np.array_equal(part[1], y)
        assert part[1].dtype == np.int64


@pytest.fixture
def unpublished(monkeypatch):
    """Tiny sets are nobody's: take them for what they are."""
    monkeypatch.setitem(CIFAR10.sha256, "training images", hashlib.sha256(X.tobytes()).hexdigest())
    monkeypatch.setitem(CIFAR10.sha256, "training labels", hashlib.sha256(Y.astype(np.uint8).tobytes()).hexdigest())
    monkeypatch.setitem(CIFAR10.sha256, "test images", hashlib.sha256(X_TEST.tobytes()).hexdigest())
    monkeypatch.setitem(CIFAR10.sha256, "test labels", hashlib.sha256(Y_TEST.astype(np.uint8).tobytes()).hexdigest())


@pytest.mark.parametrize("batch", [python2_batch, python3_batch, partial(python3_batch, protocol=4)])
def test_cifar10_python_batches(tmp_path, batch):
    folder = write_cifar10_python(tmp_path / "cifar-10-batches-py", *DATA, batch=batch)
    assert_is_the_data(cifar.read_cifar(CIFAR10, folder))
    archive = write_tar(tmp_path / "cifar-10-python.tar.gz", folder)
    assert_is_the_data(cifar.read_cifar(CIFAR10, archive))


def test_cifar10_binary(tmp_path):
    folder = write_cifar10_binary(tmp_path / "cifar-10-batches-bin", *DATA)
    assert_is_the_data(cifar.read_cifar(CIFAR10, folder))
    archive = write_tar(tmp_path / "cifar-10-binary.tar.gz", folder)
    assert_is_the_data(cifar.read_cifar(CIFAR10, archive))


def test_cifar10_is_found_in_every_form(tmp_path, unpublished):
    python = write_cifar10_python(tmp_path / "a" / "cifar-10-batches-py", *DATA)
    binary = write_cifar10_binary(tmp_path / "b" / "cifar-10-batches-bin", *DATA)
    (tmp_path / "c").mkdir()
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    write_tar(tmp_path / "c" / "cifar-10-python.tar.gz", python)
    write_tar(tmp_path / "d" / "cifar-10-binary.tar.gz", binary)
    np.savez(tmp_path / "e" / "cifar10.npz", x_train=X, y_train=Y, x_test=X_TEST, y_test=Y_TEST)
    hashes = {open_data("cifar10", root=tmp_path / root).sha256 for root in "abcde"}
    named = (python, binary, tmp_path / "c" / "cifar-10-python.tar.gz")
    hashes |= {open_data("cifar10", root=path).sha256 for path in named}
    assert len(hashes) == 1


def test_what_is_not_cifar10_is_refused(tmp_path):
    write_cifar10_python(tmp_path / "cifar-10-batches-py", *DATA)
    with pytest.raises(ChecksumError, match="training images are not those of cifar10"):
        open_data("cifar10", root=tmp_path)


def test_environment_variable(tmp_path, unpublished, monkeypatch):
    write_cifar10_python(tmp_path / "cifar-10-batches-py", *DATA)
    monkeypatch.setenv("CADR_DATA", str(tmp_path))
    assert open_data("cifar10").num_classes == 10


@pytest.mark.parametrize("form", ["python", "binary"])
@pytest.mark.parametrize("packed", [False, True])
def test_cifar100(tmp_path, form, packed):
    x, y = tiny(200, classes=100)
    coarse = y % 20
    folder = tmp_path / f"cifar-100-{form}"
    folder.mkdir()
    if form == "python":
        (folder / "train").write_bytes(python2_batch(x, y, key="fine_labels"))
        (folder / "test").write_bytes(python2_batch(x[:100], y[:100], key="fine_labels"))
    else:
        (folder / "train.bin").write_bytes(binary_batch(x, coarse, y))
        (folder / "test.bin").write_bytes(binary_batch(x[:100], coarse[:100], y[:100]))
    path = write_tar(tmp_path / f"cifar-100-{form}.tar.gz", folder) if packed else folder
    train, test = cifar.read_cifar(CIFAR100, path)
    assert np.array_equal(train[0], x)
    assert np.array_equal(train[1], y)
    assert np.array_equal(test[0], x[:100])


def test_cifar100_files_are_verified(tmp_path):
    x, y = tiny(200, classes=100)
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name in ("train", "test"):
        (folder / name).write_bytes(python2_batch(x, y, key="fine_labels"))
    with pytest.raises(ChecksumError, match=r"cifar-100-python/train is not the published file \(MD5"):
        open_data("cifar100", root=tmp_path)
    write_tar(tmp_path / "cifar-100-python.tar.gz", folder)
    with pytest.raises(ChecksumError, match=r"cifar-100-python.tar.gz is not the published file"):
        open_data("cifar100", root=tmp_path / "cifar-100-python.tar.gz")


def test_cifar100_repacked_is_known_by_what_it_holds(tmp_path, monkeypatch):
    x, y = tiny(200, classes=100)
    arrays = {"x_train": x, "y_train": y, "x_test": x[:100], "y_test": y[:100]}
    np.savez(tmp_path / "cifar100.npz", **arrays)
    with pytest.raises(ChecksumError, match="training images and labels are not those of cifar100"):
        open_data("cifar100", root=tmp_path)
    known = (cifar.any_order_sha256(x, y), cifar.any_order_sha256(x[:100], y[:100]))
    monkeypatch.setitem(
        BENCHMARKS, "cifar100", partial(cifar.open_cifar, dataclasses.replace(CIFAR100, any_order=known))
    )
    shuffled = np.random.default_rng(0).permutation(200)
    np.savez(tmp_path / "cifar100.npz", **arrays | {"x_train": x[shuffled], "y_train": y[shuffled]})
    pool = open_data("cifar100", root=tmp_path)
    assert pool.class_names[:2] == ("apple", "aquarium_fish")
    assert np.array_equal(pool.examples, x[shuffled])
    assert verify("cifar100", tmp_path)[0].status == "verified"
    np.savez(tmp_path / "cifar100.npz", **arrays | {"y_train": y[::-1].copy()})  # the right images under wrong names
    assert verify("cifar100", tmp_path)[0].status == "damaged"


@pytest.mark.parametrize("zipped", [True, False])
def test_fashion_mnist(tmp_path, zipped):
    x, y = X[:, :28, :28, 0], Y
    folder = write_fashion_mnist(tmp_path / "fashion-mnist", x, y, x[:10], y[:10], zipped)
    pool = fashion_mnist.to_pool(fashion_mnist.read_fashion_mnist(folder))
    assert pool.examples.shape == (50, 28, 28, 3)
    assert np.array_equal(pool.examples, np.repeat(x[..., None], 3, axis=-1))
    assert np.array_equal(pool.labels, y)
    assert pool.test_labels is not None
    assert len(pool.test_labels) == 10
    with pytest.raises(ChecksumError, match="train-images-idx3-ubyte does not hold what was published"):
        open_data("fashion_mnist", root=tmp_path)


def test_idx_reads_no_more_than_announced(tmp_path):
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 10]) + bytes(10_000_000)))
    with pytest.raises(fashion_mnist.IdxError, match=r"announces 10 bytes for shape .* and holds more"):
        fashion_mnist.read_idx(bomb, 1)


@pytest.mark.parametrize("packed", [False, True])
def test_stl10(tmp_path, packed):
    x, y = tiny(20, side=96)
    unlabelled, _ = tiny(7, side=96, seed=2)
    folder = write_stl10(tmp_path / "stl10_binary", x, y, unlabelled, x[:10], y[:10])
    pool = stl10.open_stl10(write_tar(tmp_path / "stl10_binary.tar.gz", folder) if packed else folder)
    assert np.array_equal(pool.examples[:20], x)
    assert np.array_equal(pool.examples[20:], unlabelled)
    assert pool.labels.tolist() == y.tolist() + [-1] * 7
    assert pool.test_labels is not None
    assert np.array_equal(pool.test_labels, y[:10])
    with pytest.raises(ChecksumError, match=r"train_X.bin is not the published file"):
        open_data("stl10", root=folder)


def test_stl10_labels_come_from_the_labelled_pool_only(tmp_path):
    x, y = tiny(100, side=96)
    folder = write_stl10(tmp_path / "stl10_binary", x, y, x, x[:10], y[:10])
    pool = stl10.open_stl10(folder)
    for name, parameters in (("longtail", {"n_max": 5, "gamma": 5}), ("uniform", {"n": 50}), ("mcar", {"n": 50})):
        split = make_split(pool, PROTOCOLS[name](**parameters), seed=1)
        assert split.labelled.max() < 100
        assert apply(pool, split).num_streamed == 200


def write_mini(root, csvs, where="{label}/{name}"):
    written: dict[str, int] = {}
    for csv, rows in csvs.items():
        lines = ["filename,label"]
        for name, label in rows:
            pixels = np.full((84, 84), len(written) % 256, np.uint8)
            write_image(root / where.format(name=name, label=label), pixels)
            written[name] = len(written) % 256
            lines.append(f"{name},{label}")
        (root / csv).write_text("\n".join(lines))
    return written


@pytest.mark.parametrize("where", ["{label}/{name}", "images/{name}", "images/{label}/{name}"])
def test_mini_imagenet_from_the_few_shot_lists(tmp_path, where):
    root = tmp_path / "mini_imagenet"
    csvs = {
        "train.csv": [(f"n1_{i:02}.png", "n1") for i in range(12)],
        "val.csv": [(f"n0_{i:02}.png", "n0") for i in range(12)],
        "test.csv": [(f"n2_{i:02}.png", "n2") for i in range(12)],
    }
    written = write_mini(root, csvs, where)
    pool = open_data("mini_imagenet", root=tmp_path)
    assert pool.class_names == ("n0", "n1", "n2")
    assert pool.counts.tolist() == [10, 10, 10]
    assert np.bincount(pool.test_labels).tolist() == [2, 2, 2]
    assert pool.examples.shape[1:] == (84, 84, 3)
    assert pool.test_examples[0, 0, 0, 0] == written["n0_10.png"]
    names = [name.rsplit("/")[-1] for name in pool.identifiers]
    assert [written[name] for name in names] == pool.examples[:, 0, 0, 0].tolist()


def test_mini_imagenet_from_lists_that_part_images(tmp_path):
    root = tmp_path / "mini-imagenet"
    write_mini(
        root,
        {
            "train.csv": [(f"{c}_{i}.png", f"n{c}") for c in range(3) for i in range(4)],
            "test.csv": [(f"{c}_t{i}.png", f"n{c}") for c in range(3) for i in range(2)],
        },
    )
    pool = open_data("mini_imagenet", root=tmp_path)
    assert pool.counts.tolist() == [4, 4, 4]
    assert len(pool.test_labels) == 6


def test_mini_imagenet_from_an_npz(tmp_path, monkeypatch):
    monkeypatch.setattr(mini_imagenet, "TRAIN", 2)
    monkeypatch.setattr(mini_imagenet, "TEST", 1)
    x, y = tiny(200, side=84, classes=100)
    np.savez(tmp_path / "mini_imagenet.npz", x_train=x, y_train=y, x_test=x[:100], y_test=y[:100])
    pool = open_data("mini_imagenet", root=tmp_path)
    assert np.array_equal(pool.examples, x)
    assert pool.counts.tolist() == [2] * 100
    assert pool.class_names[:2] == ("house_finch", "robin")
    assert verify("mini_imagenet", tmp_path)[0].status == "readable"
    np.savez(tmp_path / "mini_imagenet.npz", x_train=x, y_train=y // 2, x_test=x[:100], y_test=y[:100])
    assert (
        "y_train should be int64, and have 2 times each label from 0 to 99"
        in verify("mini_imagenet", tmp_path)[0].remark
    )


def test_mini_imagenet_calls_classes_by_words(tmp_path):
    csvs = {f"{part}.csv": [(f"{part}{i}.png", f"n0153282{i}") for i in (8, 9)] for part in ("train", "test")}
    write_mini(tmp_path / "mini_imagenet", csvs)
    assert open_data("mini_imagenet", root=tmp_path).class_names == ("n01532828", "house_finch")


def test_verify_tells_what_is_there(tmp_path, unpublished):
    (tmp_path / "new").mkdir()
    assert [f.status for f in verify("digits", tmp_path)] == ["embedded"]
    assert [f.status for f in verify("cifar10", tmp_path)] == ["not there"]
    folder = write_cifar10_python(tmp_path / "cifar-10-batches-py", *DATA)
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"half an archive")
    findings = verify("cifar10", tmp_path)
    assert [(f.status, f.path and f.path.name) for f in findings] == [
        ("verified", "cifar-10-batches-py"),
        ("damaged", "cifar-10-binary.tar.gz"),
    ]
    (folder / "data_batch_3").write_bytes(b"")
    assert verify("cifar10", tmp_path)[0].status == "damaged"


def test_verify_by_published_checksums(tmp_path, monkeypatch):
    x, y = tiny(20, side=96)
    folder = write_stl10(tmp_path / "stl10_binary", x, y, x, x, y)
    assert verify("stl10", tmp_path)[0].status == "damaged"
    md5 = {f.name: hashlib.md5(f.read_bytes()).hexdigest() for f in folder.iterdir()}
    known = dataclasses.replace(KNOWN["stl10"], forms=(Form("stl10_binary", files=dict(md5)),))
    monkeypatch.setitem(KNOWN, "stl10", known)
    assert verify("stl10", tmp_path)[0].status == "verified"
    assert open_data("stl10", root=tmp_path).num_labelled == 20
    (folder / "test_y.bin").unlink()
    assert "test_y.bin is not there" in verify("stl10", tmp_path)[0].remark


def test_verify_without_a_published_checksum(tmp_path):
    x, y = tiny(100, classes=100)
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    for name in ("train.bin", "test.bin"):
        (folder / name).write_bytes(binary_batch(x, y % 20, y))
    assert verify("cifar100", tmp_path)[0].status == "readable"


def test_every_benchmark_is_known():
    from cadr.data import BENCHMARKS

    assert set(BENCHMARKS) == set(KNOWN)
    assert all(isinstance(known, Known) for known in KNOWN.values())
    assert find("cifar10", "/nowhere/at/all") == []
