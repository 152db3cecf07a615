"""A run goes on with the data it was begun with: other pixels or features are other data."""

import dataclasses
import json

import numpy as np
import pytest
from PIL import Image

from cadr.cli.main import main
from cadr.data import Pool, pool
from cadr.errors import DataError
from cadr.inference import evaluate_run
from cadr.training import checkpoint, train
from tests.report.own_runs import image_run, write_images
from tests.training import tiny

CHANGED = r"The data have changed since .*train into a new folder, or put the data back as they were"


def begun(out, pool):
    """A run that was stopped after its first checkpoint."""
    records = train(tiny.config(), out, pool=pool)
    for record in records:
        if record["step"] >= 30:
            break
    records.close()
    return out


def with_value(pool, part, place, value):
    array = getattr(pool, part).copy()
    array[place] = value
    return dataclasses.replace(pool, **{part: array})


@pytest.mark.parametrize(
    ("part", "place", "value"), [("examples", (7, 2), 0.5), ("test_examples", (0, 0), 0.5), ("test_labels", 3, 1)]
)
def test_one_changed_value_is_noticed(part, place, value, tmp_path):
    out, pool = begun(tmp_path, tiny.pool()), tiny.pool()
    assert getattr(pool, part)[place] != value
    other = with_value(pool, part, place, value)
    with pytest.raises(DataError, match=CHANGED):
        tiny.finish(tiny.config(), out, pool=other)
    with pytest.raises(DataError, match=CHANGED):
        evaluate_run(out, pool=other, device="cpu")
    assert tiny.finish(tiny.config(), out)["kind"] == "finished"
    with pytest.raises(DataError, match=CHANGED):  # a finished run, too, is none of other data
        tiny.finish(tiny.config(), out, pool=other)


def test_a_mapped_file_whose_values_change(tmp_path):
    pool = tiny.pool()
    np.save(tmp_path / "x.npy", pool.examples)

    def mapped():
        return dataclasses.replace(pool, examples=np.load(tmp_path / "x.npy", mmap_mode="r"))

    out = begun(tmp_path / "run", mapped())
    np.save(tmp_path / "x.npy", with_value(pool, "examples", (89, 3), 0.5).examples)
    with pytest.raises(DataError, match=CHANGED):
        tiny.finish(tiny.config(), out, pool=mapped())
    np.save(tmp_path / "x.npy", np.asfortranarray(pool.examples))  # the same numbers, kept otherwise
    assert tiny.finish(tiny.config(), out, pool=mapped())["kind"] == "finished"


def test_one_changed_pixel_of_a_picture(tmp_path, capsys):
    run = image_run(tmp_path)
    assert main(["evaluate", str(run)]) == 0
    capsys.readouterr()
    picture = write_images(tmp_path / "copy", 40)[39]
    picture[0, 0, 0] ^= 1
    Image.fromarray(picture).save(tmp_path / "squares" / "039.png")
    assert main(["evaluate", str(run)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"cadr: The data have changed since {run} was begun")
    assert error.count("\n") == 1


def test_a_folder_from_before_contents_were_looked_at_goes_on(tmp_path):
    out = begun(tmp_path, tiny.pool())
    for name in (checkpoint.CURRENT, checkpoint.PREVIOUS):
        path = out / name / "manifest.json"
        manifest = json.loads(path.read_text())
        for later in ("contents", "rate_share"):
            del manifest["facts"][later]
        del manifest["sha256"]
        path.write_text(json.dumps({**manifest, "sha256": checkpoint._digest(manifest)}))
    assert checkpoint.load(out / checkpoint.CURRENT)[1].keys() == {"data", "watch", "before", "logged"}
    evaluate_run(out, pool=tiny.pool(), device="cpu")
    with pytest.raises(DataError, match=CHANGED):  # judged by what it has
        tiny.finish(tiny.config(), out, pool=tiny.pool(n=120))
    assert tiny.finish(tiny.config(), out, pool=tiny.pool())["kind"] == "finished"
    assert checkpoint.load(out / checkpoint.CURRENT)[1]["contents"] == tiny.pool().contents


def large(examples):
    return Pool(examples, np.arange(len(examples)) % 2, ("a", "b"))


@pytest.mark.parametrize("shape", [(1000, 64, 64, 3), (100, 256, 256, 3), (5, 600, 600, 3), (3_000_000, 2)])
def test_of_large_arrays_little_is_read_and_other_contents_are_noticed(shape, monkeypatch):
    monkeypatch.setattr(pool, "WHOLE", 1 << 20)
    kind = np.uint8 if len(shape) == 4 else np.float32
    examples = np.random.default_rng(0).integers(0, 256, shape).astype(kind)
    looked_at = pool._looked_at(examples)
    assert sum(rows.nbytes for rows in looked_at) <= max(1 << 20, examples[:1].nbytes)
    assert len(looked_at) <= pool.STRETCHES
    before = large(examples).contents
    assert large(examples.copy()).contents == before
    assert large(examples[::-1]).contents != before
    assert large(examples // 2).contents != before
    if 2 * examples[:1].nbytes <= 1 << 20:
        examples[-1] += 1  # the first and the last rows are among them
        assert large(examples).contents != before


def test_of_arrays_up_to_the_bound_every_byte_counts(monkeypatch):
    monkeypatch.setattr(pool, "WHOLE", 1 << 20)
    monkeypatch.setattr(pool, "STRETCH", 1 << 10)  # 64 of them would leave most of a MiB out
    array = np.zeros((1 << 10, 1 << 10), dtype=np.uint8)
    before = pool.contents_hash(array)
    for row in range(0, 1 << 10, 37):
        array[row, 5] = 1
        assert pool.contents_hash(array) != before, row
        array[row, 5] = 0
