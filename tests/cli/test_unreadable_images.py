"""Pictures that cannot be read: all of them are named in one sentence, and nothing is written."""

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
