"""The digests that say whether behaviour has changed: what does not depend on the machine is compared here."""

import contextlib
import json

import pytest
import torch

from benchmarks import digests

KNOWN = json.loads(digests.RECORD.read_text())["runs"]


@pytest.fixture
def samples(tmp_path):
    with contextlib.chdir(tmp_path):
        digests.lay_out(tmp_path)
        yield tmp_path


def test_every_run_is_recorded():
    assert KNOWN.keys() == {*digests.RUNS, "stopped", "exchanged", "estimator"}
    assert len({digest["curve"] for digest in KNOWN.values()}) == len(KNOWN)  # no run is another one's double


@pytest.mark.parametrize("name", ["cadr", "held-out", "table", "photos"])
def test_splits_are_those_of_the_record(name, samples):
    """They depend on the seed and the data alone."""
    digests.run([*digests.RUNS[name], "--steps", "2"], samples / "run")
    assert digests.digest(samples / "run")["split"] == KNOWN[name]["split"]


def test_a_run_that_was_stopped_is_one_that_was_not(samples):
    digests.run_stopped(samples / "stopped")
    arguments = [*digests.STOPPED, "--model", "mlp", "--views", "features"]
    digests.run([*arguments, "--lr", "0.03", "--ema", "0.999"], samples / "whole")
    assert digests.digest(samples / "stopped") == digests.digest(samples / "whole")


def test_a_digest_notices_one_bit(samples):
    digests.run(digests.RUNS["table"][:3] + digests.SHORT, samples / "run")
    before = digests.digest(samples / "run")
    (part,) = (samples / "run" / "checkpoint").glob("part-*.pt")
    tensors = torch.load(part, weights_only=True)
    name = next(name for name in tensors if name.startswith("average."))
    tensors[name].view(torch.int32)[0] ^= 1
    torch.save(tensors, part)
    after = digests.digest(samples / "run")
    assert before["weights"] != after["weights"]
    assert before["curve"] == after["curve"]
    records = (samples / "run" / "metrics.jsonl").read_text()
    (samples / "run" / "metrics.jsonl").write_text(records.replace('"loss": ', '"loss": 1', 1))
    assert digests.digest(samples / "run")["curve"] != after["curve"]
