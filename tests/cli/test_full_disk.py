"""When the disk is full: one sentence that names the file, exit status 2, and what was there before is still there."""

import resource
from contextlib import contextmanager

import pytest

from cadr.cli.main import main

COMMANDS = {
    "predictions.csv": ["predict", "RUN", "RUN/../trees.csv", "--out", "OUT"],
    "predictions.parquet": ["predict", "RUN", "RUN/../trees.csv", "--out", "OUT"],
    "report.html": ["report", "RUN", "--out", "OUT"],
    "model.safetensors": ["export", "RUN", "--formats", "safetensors", "--out", "OUT/.."],
    "model.pt2": ["export", "RUN", "--formats", "torch", "--out", "OUT/.."],
    "model.onnx": ["export", "RUN", "--formats", "onnx", "--out", "OUT/.."],
    "split.json": ["data", "split", "digits", "--n-max", "50", "--gamma", "20", "--out", "OUT"],
}
NEEDS = {"predictions.parquet": "pyarrow", "model.safetensors": "safetensors", "model.onnx": "onnxscript"}


@contextmanager
def room_for(size):
    """No file may become larger than so many bytes, which fails as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk(name, trees, tmp_path, capsys):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    out = tmp_path / "out" / name
    out.parent.mkdir()
    out.write_text("from before")
    arguments = [a.replace("RUN", str(trees)).replace("OUT", str(out)) for a in COMMANDS[name]]
    arguments = [str(out.parent) if a.endswith("/..") else a for a in arguments]
    with room_for(600):
        assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"cadr: {out} could not be written: ")
    assert error.count("\n") == 1
    assert [f.name for f in out.parent.iterdir()] == [name]
    assert out.read_text() == "from before"


def test_what_is_no_plain_file_is_not_replaced(tmp_path, trees, capfd):
    (tmp_path / "report.html").symlink_to("elsewhere.html")
    assert main(["report", str(trees), "--out", str(tmp_path / "report.html")]) == 0
    assert (tmp_path / "report.html").is_symlink()
    assert (tmp_path / "elsewhere.html").read_text().startswith("<!doctype html>")
    assert main(["report", str(trees), "--out", str(tmp_path)]) == 2
    assert f"{tmp_path} could not be written: Is a directory" in capfd.readouterr().err
