"""The damage that `make fuzz` does is that of its seed, and what counts as a finding."""

import json
import random
import zipfile

import numpy as np
import pytest
from benchmarks.fuzz import changed_input, judged
from benchmarks.fuzz_damage import damage


@pytest.mark.parametrize("name", ["t.csv", "x.npy", "z.npz", "r.json"])
def test_damage_is_of_the_seed_and_does_something(tmp_path, name):
    def good(path):
        if name == "x.npy":
            np.save(path, np.eye(5))
        elif name == "z.npz":
            np.savez(path, x=np.eye(5), y=np.arange(5))
        else:
            path.write_text("a,b\n1,2\n3,4\n" if name == "t.csv" else json.dumps({"a": [1, {"b": "c"}]}))
        return path

    contents = []
    for seed in range(30):
        twice = []
        for folder in ("one", "two"):
            (tmp_path / folder).mkdir(exist_ok=True)
            path = good(tmp_path / folder / name)
            before = path.read_bytes()
            how = damage(path, random.Random(seed))
            if how == "no file":
                break
            twice.append(path.read_bytes())
        else:
            if how != "member" or not zipfile.is_zipfile(tmp_path / "one" / name):  # an archive notes the time of day
                assert twice[0] == twice[1]
            contents.append(twice[0] != before)
            continue
        for folder in ("one", "two"):
            path = tmp_path / folder / name
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    assert sum(contents) > 0.7 * len(contents)


def test_what_counts_as_a_finding():
    assert judged(0, "") == judged(2, "cadr: no.\n") == judged(2, "cadr train: no; see cadr train --help\n") == ""
    assert judged(1, "Traceback (most recent call last):\nE: x\n") == "traceback: E: x"
    assert judged(-11, "").startswith("killed by SIGSEGV")
    assert judged(-24, "") == "hang"
    assert judged(3, "") == "exit status 3"
    assert judged(2, "") == "0 sentences"
    assert judged(2, "cadr: " + "a" * 700) == "a sentence too long to be read"


def test_what_is_given_to_be_read_stays_as_it_was():
    before = {"t.csv": b"1", "net/config.toml": b"2"}
    assert changed_input(before, before, ["evaluate", "net"]) == ""
    assert changed_input(before, before | {"new": b"3"}, ["evaluate", "net"]) == ""
    assert changed_input(before, {"t.csv": b"9", "net/config.toml": b"2"}, ["evaluate", "net"]) == "changed t.csv"
    assert changed_input(before, {"t.csv": b"1"}, ["evaluate", "net"]) == "changed net/config.toml"
    assert changed_input(before, {"t.csv": b"1"}, ["train", "t.csv", "--out", "net"]) == ""
