import json

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data import PROTOCOLS, Split
from tests.data.test_cifar10_pack import GOLDEN
from tests.data.writers import tiny, write_image


def run(capsys, *arguments):
    try:
        status = main(["data", *map(str, arguments)])
    except SystemExit as stop:
        status = int(stop.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_split_prints_the_class_table_and_writes_the_file(capsys, tmp_path):
    out = tmp_path / "split.json"
    status, text, _ = run(
        capsys, "split", "digits", "--protocol", "longtail", "--n-max", 50, "--gamma", 50, "--seed", 1, "--out", out
    )
    assert status == 0
    rows = [line.split() for line in text.splitlines()[3:13]]
    assert [int(row[2]) for row in rows] == [50, 33, 21, 14, 9, 6, 4, 3, 2, 1]
    assert rows[0][-1] == "█" * 20
    split = Split.read(out)
    assert split.sha256 in text
    assert split.parameters == {**PROTOCOLS["longtail"]().parameters(), "held_out": 0}


def test_another_seed_is_another_split(capsys, tmp_path):
    for seed in (1, 2):
        run(capsys, "split", "digits", "--seed", seed, "--out", tmp_path / f"{seed}.json")
    one, two = (Split.read(tmp_path / f"{seed}.json") for seed in (1, 2))
    assert (one.seed, two.seed) == (1, 2)
    assert not np.array_equal(one.labelled, two.labelled)


def test_show(capsys, tmp_path):
    run(capsys, "split", "digits", "--n-max", 20, "--gamma", 20, "--out", tmp_path / "s.json")
    assert "1,267 labelled" in run(capsys, "show", "digits")[1]
    assert "72 labelled" in run(capsys, "show", "digits", "--split", tmp_path / "s.json")[1]


@pytest.mark.parametrize(
    ("protocol", "flags", "labelled"),
    [
        ("mcar", ["--n", "40"], 40),
        ("uniform", ["--n", "41"], 41),
        ("random_rates", ["--n", "100"], 100),
        ("prg", ["--n", "40", "--n-max", "10"], 40),
        ("darp", ["--n-max", "30", "--m-max", "60", "--gamma", "10", "--gamma-unlabelled", "2"], 118),
        ("darp_reversed", ["--n-max", "30", "--m-max", "60", "--gamma", "10"], 118),
        ("propensity", ["--probabilities", *["1"] * 10], 1267),
        ("longtail", ["--gamma-unlabelled", "0.1", "--no-labelled-in-stream", "--held-out", "100"], 143),
    ],
)
def test_every_protocol_has_its_flags(capsys, tmp_path, protocol, flags, labelled):
    out = tmp_path / "split.json"
    status, _, error = run(capsys, "split", "digits", "--protocol", protocol, *flags, "--out", out)
    assert (status, error) == (0, "")
    assert sum(json.loads(out.read_text())["counts"]) == labelled


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_help_shows_the_flags_of_the_chosen_protocol(capsys, protocol):
    status, text, _ = run(capsys, "split", "--protocol", protocol, "--help")
    assert status == 0
    for name in PROTOCOLS[protocol]().parameters():
        assert "--" + name.replace("_", "-") in text


def test_without_out_nothing_is_written(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "split", "digits")[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_own_data(capsys, tmp_path):
    for name in "abcd":
        write_image(tmp_path / "photos" / f"{name}.png", tiny(1, side=8)[0][0])
    (tmp_path / "mine.csv").write_text("file,kind\na.png,x\nb.png,y\n")
    flags = ["--labels", tmp_path / "mine.csv", "--label-column", "kind", "--image-size", 6]
    status, text, _ = run(capsys, "show", tmp_path / "photos", *flags)
    assert status == 0
    assert text.startswith("photos: 4 images of 6×6 pixels, 2 classes; 2 labelled (50 %)")
    np.savez(tmp_path / "m.npz", x=np.eye(4), y=[0, 1, -1, -1])
    assert run(capsys, "show", tmp_path / "m.npz")[1].startswith("m: 4 rows of 4 features")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nowhere"], "nowhere is neither a file or folder nor a benchmark"),
        (["show", "~nobody-here/x.csv"], "~nobody-here/x.csv is neither a file or folder nor a benchmark"),
        (["show", "cifar10", "--root", "~nobody-here"], "~nobody-here"),
        (["split", "digits", "--protocol", "fair"], "expected one of mcar, uniform, longtail"),
        (["split", "digits", "--protocol", "mcar", "--gamma", "5"], "--gamma"),
        (["split", "digits", "--n-max", "9999"], "class 0 has 125 rows but 9999 are asked for"),
        (["split", "digits", "--gamma", "0.5"], "gamma lies between 1 and"),
        (["split", "digits", "--held-out", "7"], "multiple of 10"),
        (["show", "digits", "--split", "nowhere.json"], "cannot read the split nowhere.json"),
        (["verify", "imagenet"], "there is no benchmark 'imagenet'"),
        (["get", "imagenet"], "there is no benchmark 'imagenet'"),
        (["get", "digits"], "always there"),
        ([], "COMMAND"),
    ],
)
def test_mistakes_are_one_sentence_and_status_2(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    status, _, error = run(capsys, *arguments)
    assert status == 2
    assert words in error
    assert len(error.strip().splitlines()) == 1
    assert "Traceback" not in error


def test_verify_lists_every_benchmark(capsys, tmp_path):
    status, text, _ = run(capsys, "verify", "--root", tmp_path)
    assert status == 0
    for name in ("digits", "fashion_mnist", "cifar10", "cifar100", "stl10", "mini_imagenet"):
        assert name in text
    assert run(capsys, "verify", "cifar10", "--root", tmp_path)[0] == 2
    (tmp_path / "cifar10.npz").write_bytes(b"damaged")
    status, text, _ = run(capsys, "verify", "--root", tmp_path)
    assert status == 2
    assert "damaged" in text


def test_get_without_a_network(capsys, tmp_path, monkeypatch):
    from cadr.data.benchmarks.registry import KNOWN, Download, Known

    nowhere = Known(forms=(), downloads=(Download("http://no-such-host.invalid/x.tar.gz", "0" * 32),))
    monkeypatch.setitem(KNOWN, "cifar10", nowhere)
    status, _, error = run(capsys, "get", "cifar10", "--root", tmp_path)
    assert status == 2
    assert "cannot reach http://no-such-host.invalid/x.tar.gz" in error
    assert str(tmp_path) in error


def test_the_papers_split_of_cifar10(capsys, tmp_path):
    from cadr.data.benchmarks import find

    if not find("cifar10"):
        pytest.skip("CIFAR-10 is not under data/ or CADR_DATA")
    run(capsys, "split", "cifar10", "--n-max", 50, "--gamma", 50, "--seed", 1, "--out", tmp_path / "s.json")
    assert Split.read(tmp_path / "s.json").sha256 == GOLDEN[50]
