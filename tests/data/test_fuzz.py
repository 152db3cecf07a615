"""Files with random damage: they open, or the error is a named one; never another, and never anything else happens."""

import gzip
import io

import numpy as np
import pytest

from cadr.data.benchmarks import cifar, fashion_mnist
from cadr.data.benchmarks.unpickle import unpickle
from cadr.data.sources import images
from cadr.errors import CadrError
from tests.data.loose import PROTOCOLS, Split, make_split, open_data
from tests.data.writers import idx, python2_batch, python3_batch, tiny, write_cifar10_python, write_image, write_tar

X, Y = tiny(10)
ROUNDS = 150


def damaged(data: bytes, random: np.random.Generator) -> bytes:
    """Some bytes changed, cut out or doubled."""
    mutable = bytearray(data)
    for _ in range(random.integers(1, 4)):
        at = int(random.integers(0, len(mutable)))
        kind = random.integers(0, 4)
        if kind == 0:
            mutable[at] = int(random.integers(0, 256))
        elif kind == 1:
            mutable[at] ^= 1 << int(random.integers(0, 8))
        elif kind == 2:
            del mutable[at : at + int(random.integers(1, 20))]
        else:
            mutable[at:at] = mutable[at : at + int(random.integers(1, 20))]
        if not mutable:
            break
    return bytes(mutable)


def pickled(path):
    return unpickle(str(path), path.read_bytes())


def archived(path):
    return cifar.read_cifar(cifar.CIFAR10, path)


def npz(save):
    buffer = io.BytesIO()
    save(buffer, x=np.eye(4, dtype=np.float32), y=np.array([0, 1, -1, 1]))
    return buffer.getvalue()


def png(folder, **options):
    return write_image(folder / "good.png", X[0], **options).read_bytes()


def split(folder):
    make_split(open_data("digits"), PROTOCOLS["mcar"](), 1).write(folder / "good.json")
    return (folder / "good.json").read_bytes()


FILES = {
    "python 2 batch": ("batch", lambda _: python2_batch(X[:1], Y[:1]), pickled),
    "python 3 batch": ("batch", lambda _: python3_batch(X[:1, :2, :2], Y[:1], protocol=4), pickled),
    "archive": (
        "cifar-10-python.tar.gz",
        lambda folder: write_tar(folder / "a.tar.gz", write_cifar10_python(folder / "c", X, Y, X, Y)).read_bytes(),
        archived,
    ),
    "stored npz": ("m.npz", lambda _: npz(np.savez), open_data),
    "compressed npz": ("m.npz", lambda _: npz(np.savez_compressed), open_data),
    "idx": ("i.idx", lambda _: idx(X[:, :2, :2, 0].copy()), lambda path: fashion_mnist.read_idx(path, 3)),
    "gzipped idx": (
        "i.gz",
        lambda _: gzip.compress(idx(X[:, :2, :2, 0].copy())),
        lambda path: fashion_mnist.read_idx(path, 3),
    ),
    "image": ("i.png", png, images.decode),
    "table": ("t.csv", lambda _: b'a,"b c",label\n1,2,x\n3,4.5,"y"\n5,-6e3,\n', open_data),
    "table with words and gaps": ("t.csv", lambda _: b"a;b;label\n1;red;x\nNA;blue;y\n5;;x\n-6e3;red;\n", open_data),
    "table with dates": ("t.csv", lambda _: b"a,label\n2025-03-04,x\n2025-03-04T09:30Z,y\n,x\n", open_data),
    "split": (
        "s.json",
        split,
        Split.read,
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_damage_is_noticed_or_harmless(kind, tmp_path):
    name, make, read = FILES[kind]
    good = make(tmp_path)
    path = tmp_path / name
    path.write_bytes(good)
    read(path)
    random = np.random.default_rng(0)
    messages = []
    for _ in range(ROUNDS):
        path.write_bytes(damaged(good, random))
        try:
            read(path)
        except CadrError as error:
            messages.append(str(error).strip())
    assert messages
    assert not [m for m in messages if len(m.splitlines()) > 1]
