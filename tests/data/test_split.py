import json

import numpy as np
import pytest

from cadr.data.split import SplitError
from cadr.errors import ProtocolError
from cadr.utils.files import WriteError
from tests.data.loose import PROTOCOLS, Pool, Split, apply, make_split, open_data


@pytest.fixture(scope="module")
def pool():
    return open_data("digits")


@pytest.fixture(scope="module")
def split(pool):
    return make_split(pool, PROTOCOLS["longtail"](n_max=50, gamma=50), seed=1)


def test_the_file_is_the_contracts(pool, split, tmp_path):
    split.write(tmp_path / "split.json")
    content = json.loads((tmp_path / "split.json").read_text())
    assert list(content) == ["dataset", "protocol", "parameters", "seed", "counts", "labelled", "unlabelled", "sha256"]
    assert content["dataset"] == "digits"
    assert content["counts"] == [50, 33, 21, 14, 9, 6, 4, 3, 2, 1]
    assert content["unlabelled"] == "all"
    assert np.bincount(pool.labels[content["labelled"]]).tolist() == content["counts"]
    assert [p.name for p in tmp_path.iterdir()] == ["split.json"]  # nothing left over from writing


def test_golden_hash(split):
    """The digits' split with seed 1 is the same everywhere and for ever."""
    assert split.sha256 == "8cc571cbf433bea110555a4ea6e4ed31a2f64aa251aac303ebdc69d3537ae579"


def test_round_trip(pool, tmp_path):
    for protocol in (PROTOCOLS["longtail"](gamma_unlabelled=5.0), PROTOCOLS["propensity"](probabilities=(0.1,) * 10)):
        made = make_split(pool, protocol, seed=3, held_out=100)
        made.write(tmp_path / "split.json")
        read = Split.read(tmp_path / "split.json")
        assert read.sha256 == made.sha256
        assert np.array_equal(read.labelled, made.labelled)
        assert np.array_equal(apply(pool, read).labels, apply(pool, made).labels)


def test_writing_replaces_whole_files(split, tmp_path, monkeypatch):
    path = tmp_path / "split.json"
    path.write_text("old")

    def failing(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", failing)
    with pytest.raises(WriteError, match=r"split\.json could not be written: disk full"):
        split.write(path)
    assert path.read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["split.json"]


def test_apply_hides_the_rest(pool, split):
    seen = apply(pool, split)
    assert seen.counts.tolist() == list(split.counts)
    kept = np.flatnonzero(seen.labels >= 0)
    assert np.array_equal(kept, split.labelled)
    assert np.array_equal(seen.labels[kept], pool.labels[kept])
    assert np.array_equal(seen.hidden_labels, pool.labels)
    assert seen.stream is None
    assert seen.test_labels is not None


def test_applying_again_starts_from_the_truth(pool, split):
    other = make_split(pool, PROTOCOLS["mcar"](n=40), seed=5)
    assert np.array_equal(apply(apply(pool, split), other).labels, apply(pool, other).labels)


def test_held_out_rows_are_in_neither_stream_and_replace_the_test_part(pool):
    splits = [make_split(pool, PROTOCOLS["longtail"](), seed=seed, held_out=100) for seed in (10, 11)]
    parts = [apply(pool, s) for s in splits]
    for part, made in zip(parts, splits, strict=True):
        assert len(part.test_labels) == 100
        assert np.bincount(part.test_labels).tolist() == [10] * 10
        assert len(part.stream) == len(pool.labels) - 100
        out = np.setdiff1d(np.arange(len(pool.labels)), part.stream)
        assert np.array_equal(part.test_examples, pool.examples[out])
        assert not np.isin(made.labelled, out).any()
    assert np.array_equal(parts[0].test_examples, parts[1].test_examples)  # decisions compare like with like
    assert not np.array_equal(parts[0].labels, parts[1].labels)


def test_half_labelled_data_are_split_already():
    labels = np.array([0, 1] * 20 + [-1] * 20)
    mine = Pool(np.zeros((60, 2), np.float32), labels, ("a", "b"), "mine")
    with pytest.raises(SplitError, match=r"mine: a protocol decides .* but 20 of these 60 rows have none; leave"):
        make_split(mine, PROTOCOLS["mcar"](n=4), seed=1)
    known = Pool(mine.examples, labels, ("a", "b"), "mine", hidden_labels=np.array([0, 1] * 30))
    assert len(make_split(known, PROTOCOLS["mcar"](n=50), seed=1).labelled) == 50


def test_a_benchmark_may_be_published_half_labelled():
    labels = np.array([0, 1] * 20 + [-1] * 20)
    pool = Pool(np.zeros((60, 2), np.float32), labels, ("a", "b"), "stl10")
    part = apply(pool, make_split(pool, PROTOCOLS["mcar"](n=4), seed=1))
    assert part.num_labelled == 4
    assert (part.hidden_labels == labels).all()


@pytest.mark.parametrize("held_out", [5, -10])
def test_held_out_is_balanced(pool, held_out):
    with pytest.raises(ProtocolError, match="multiple of 10"):
        make_split(pool, PROTOCOLS["mcar"](), 1, held_out=held_out)


def rewritten(split, tmp_path, rehash=True, **changes):
    """A split file with some of its contents changed, its hash made to fit or left."""
    content = {**split._content(), **changes}
    content = {k: v for k, v in content.items() if v is not None}
    path = tmp_path / "split.json"
    digest = split.sha256
    if rehash:
        import hashlib

        digest = hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    path.write_text(json.dumps({**content, "sha256": digest}))
    return path


def test_a_stream_that_holds_what_was_held_out_is_refused(pool, tmp_path):
    made = make_split(pool, PROTOCOLS["mcar"](n=40), seed=1, held_out=100)
    out = np.setdiff1d(np.arange(len(pool.labels)), made.unlabelled)
    for stream in ("all", sorted([*made.unlabelled.tolist(), int(out[7])])):
        with pytest.raises(SplitError, match="held-out rows out of the streams"):
            apply(pool, Split.read(rewritten(made, tmp_path, unlabelled=stream)))


def test_a_changed_file_is_refused(split, tmp_path):
    rows = split.labelled.tolist()
    with pytest.raises(SplitError, match="has been changed"):
        Split.read(rewritten(split, tmp_path, rehash=False, labelled=[*rows[:-1], rows[-1] + 1]))


def test_other_data_are_refused(pool, split, tmp_path):
    other = Pool(pool.examples, np.roll(pool.labels, 1), pool.class_names, "digits")
    with pytest.raises(SplitError, match="class counts"):
        apply(other, split)
    with pytest.raises(SplitError, match="names row 99999"):
        apply(pool, Split.read(rewritten(split, tmp_path, unlabelled=[0, 99999])))
    with pytest.raises(SplitError, match="the data are 'digits'"):
        apply(pool, Split.read(rewritten(split, tmp_path, dataset="cifar10")))


def test_held_out_rows_cannot_be_smuggled_back(pool, tmp_path):
    made = make_split(pool, PROTOCOLS["mcar"](n=40), seed=1, held_out=100)
    forged = Split.read(rewritten(made, tmp_path, unlabelled="all"))
    with pytest.raises(SplitError, match="held-out rows"):
        apply(pool, forged)
