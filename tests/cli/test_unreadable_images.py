"""Pictures that cannot be read: all of them are named in one sentence, and nothing is written."""

import struct
import subprocess
import sys

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data.sources import picture
from tests.report.own_runs import TINY, image_run, write_images

COMMANDS = {
    "data show": lambda data, out: ["data", "show", data],
    "diagnose": lambda data, out: ["diagnose", data],
    "train": lambda data, out: ["train", data, *TINY, "--out", str(out / "run")],
}


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    return image_run(tmp_path_factory.mktemp("squares"))


def sentence(capsys, arguments):
    capsys.readouterr()
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


@pytest.mark.parametrize("command", COMMANDS)
def test_those_to_train_and_to_test_on_are_named_together(command, tmp_path, capsys):
    root = tmp_path / "birds"
    for name in ("robin", "wren", "unlabelled", "test/robin", "test/wren"):
        write_images(root / name, 4)
    broken = [root / "robin" / "003.png", root / "wren" / "000.png", root / "test" / "robin" / "002.png"]
    for path in broken:
        path.write_bytes(b"no picture")
    before = sorted(tmp_path.rglob("*"))
    said = sentence(capsys, COMMANDS[command](str(root), tmp_path))
    assert said.startswith(f"cadr: 3 of 20 images cannot be read: {', '.join(map(str, broken))}; mend them or take")
    assert f"(of the first: {broken[0]} cannot be decoded as an image (" in said
    assert sorted(tmp_path.rglob("*")) == before


def test_evaluate_names_them(tmp_path, capsys):
    run = image_run(tmp_path)
    for name in ("001.png", "039.png"):
        (tmp_path / "squares" / name).write_bytes(b"")
    said = sentence(capsys, ["evaluate", str(run)])
    assert "cadr: 2 of 40 images cannot be read: " in said
    assert "001.png cannot be decoded as an image (the file is empty)" in said


@pytest.mark.parametrize("first", ["first", "last"])
def test_predict_reads_on_to_name_all_and_leaves_what_was_there(first, squares, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(picture, "TOGETHER", 4)
    write_images(tmp_path / "new", 18)
    broken = [tmp_path / "new" / f"{i:03}.png" for i in ((1, 2, 9, 17) if first == "first" else (16, 17))]
    for path in broken:
        path.write_bytes(path.read_bytes()[:60])
    out = tmp_path / "out" / "p.csv"
    predict = ["predict", str(squares), str(tmp_path / "new"), "--out", str(out)]
    said = sentence(capsys, predict)
    assert f"cadr: {len(broken)} of 18 images cannot be read: {', '.join(map(str, broken))}; mend them" in said
    assert list(out.parent.iterdir()) == []
    out.write_text("of yesterday\n")
    sentence(capsys, predict)
    assert out.read_text() == "of yesterday\n"
    for path in broken:
        path.unlink()
    assert main(predict) == 0
    assert len(out.read_text().splitlines()) == 1 + 18 - len(broken)


def test_predict_says_of_a_whole_block_that_it_cannot_be_read_not_that_its_size_is_wrong(squares, tmp_path, capsys):
    write_images(tmp_path / "new", 3)
    for path in (tmp_path / "new").iterdir():
        path.write_bytes(b"")
    said = sentence(capsys, ["predict", str(squares), str(tmp_path / "new"), "--out", str(tmp_path / "p.csv")])
    assert "3 of 3 images cannot be read" in said


def write_tiff(path, bands, size=8):
    """An uncompressed TIFF of 16 bits and so many bands, as satellites' pictures are kept."""
    pixels = np.random.default_rng(0).integers(0, 1 << 16, (size, size, bands)).astype("<u2").tobytes()
    entries = [
        (256, 4, 1, struct.pack("<I", size)),  # width
        (257, 4, 1, struct.pack("<I", size)),
        (258, 3, bands, struct.pack("<I", 8 + len(pixels))),  # bits of each band, at the end of the pixels
        (259, 3, 1, struct.pack("<HH", 1, 0)),  # not compressed
        (262, 3, 1, struct.pack("<HH", 1, 0)),
        (273, 4, 1, struct.pack("<I", 8)),  # where the pixels are
        (277, 3, 1, struct.pack("<HH", bands, 0)),
        (278, 4, 1, struct.pack("<I", size)),
        (279, 4, 1, struct.pack("<I", len(pixels))),
    ]
    bits = struct.pack(f"<{bands}H", *[16] * bands)
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHI", *e[:3]) + e[3] for e in entries)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"II*\0" + struct.pack("<I", 8 + len(pixels) + len(bits)) + pixels + bits + directory + bytes(4))


def test_bands_of_a_satellite_are_counted(tmp_path):
    """In a process of its own: what a library logs comes on standard error only where nobody has set up logging."""
    for i in range(30):
        write_tiff(tmp_path / "sat" / "ab"[i % 2] / f"{i:02}.tif", bands=13)
    command = [sys.executable, "-m", "cadr", "data", "show", str(tmp_path / "sat")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)
    assert "30 of 30 images cannot be read: " in found.stderr
    assert "has 13 channels, expected 1 (grey), 3 (RGB) or 4 (with transparency); choose three" in found.stderr


@pytest.mark.parametrize("end", [2, 8, 60, 1700])
def test_a_tiff_cut_short_has_no_channels_to_count(end, tmp_path, capsys):
    write_images(tmp_path / "sat" / "b", 4)
    write_images(tmp_path / "sat" / "a", 4)
    write_tiff(tmp_path / "sat" / "a" / "0.tif", bands=13)
    file = tmp_path / "sat" / "a" / "0.tif"
    file.write_bytes(file.read_bytes()[:end])
    assert "cannot be decoded as an image" in sentence(capsys, ["data", "show", str(tmp_path / "sat")])
