"""A report does not take the place of what the run is made of."""

import pytest

from cadr.cli.main import main


def test_the_files_of_the_run(trees, capsys):
    names = sorted(path.relative_to(trees) for path in trees.rglob("*") if path.is_file())
    assert len(names) >= 8
    before = {name: (trees / name).read_bytes() for name in names}
    for name in names:
        assert main(["report", str(trees), "--out", str(trees / name)]) == 2
        assert capsys.readouterr().err == f"cadr: {trees / name} belongs to the run; write to another file\n"
    assert {name: (trees / name).read_bytes() for name in names} == before


@pytest.mark.parametrize("name", ["split.json", "checkpoint/report.html", "checkpoint.previous/report.html"])
def test_nor_files_that_it_could_have(trees, name, capsys):
    assert main(["report", str(trees), "--out", str(trees / name)]) == 2
    assert "belongs to the run" in capsys.readouterr().err
    assert not (trees / name).exists()


def test_by_another_way(trees, tmp_path, monkeypatch, capsys):
    (tmp_path / "link.html").symlink_to(trees / "config.toml")
    monkeypatch.chdir(trees)
    for out in (tmp_path / "link.html", "config.toml", "../run/config.toml"):
        assert main(["report", ".", "--out", str(out)]) == 2
        assert "belongs to the run" in capsys.readouterr().err


def test_a_page_beside_them_is_welcome(trees):
    for _ in range(2):
        assert main(["report", str(trees), "--out", str(trees / "report.html")]) == 0
    (trees / "report.html").unlink()
