"""A scripted person goes round once: 600 pictures, 40 biased labels, 30 more in `cadr label`, and trains on.

    python benchmarks/labelling.py mini_imagenet.npz              # writes labelling.json and labelling.md
    python benchmarks/labelling.py mini_imagenet.npz --seeds 11 12 --out elsewhere.json

The file has x_train, y_train, x_test and y_test; of its classes each seed draws ten. Pictures become vectors by
EfficientNet-Lite0, whose weights are a package, and are learned by the default, the ensemble. The person answers with
the truth: with the first seed by the keys of the page, in Chromium, with the others by the same requests. Judged by 400
pictures that nobody labelled; beside it the same with 30 and with 60 labels of any pictures, and with the 30 that the
model is least sure of. The way to choose was decided on seeds from 11 on.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cells import markdown  # noqa: E402

from cadr.cli.main import main as cadr  # noqa: E402
from cadr.label.opened import open_run  # noqa: E402
from cadr.label.server import Server  # noqa: E402
from cadr.label.session import Session  # noqa: E402
from cadr.report.query import least_sure  # noqa: E402
from cadr.training.result import result  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
SEEDS = (1, 2, 3, 4, 5)
PICTURES, TESTED = 600, 400
LABELS = (12, 8, 6, 4, 3, 2, 2, 1, 1, 1)  # of the ten classes, in an order of chance
MORE = 30
FEATURES = "efficientnet-lite0"
WAYS = {
    "before": "40 labels",
    "chosen": f"and {MORE} that `cadr label` asks for",
    "least sure": f"and {MORE} that the model is least sure of",
    "random": f"and {MORE} at random",
    "twice as many": f"and {2 * MORE} at random",
}


class Drawn(NamedTuple):
    pictures: NDArray[np.uint8]
    truth: NDArray[np.int64]
    labelled: NDArray[np.int64]  # rows
    test_pictures: NDArray[np.uint8]
    test_truth: NDArray[np.int64]
    names: list[str]


def draw(arrays: Mapping[str, NDArray[Any]], seed: int) -> Drawn:
    """Ten classes, as many pictures of each, and labels as somebody gives them who labels what is easy to find."""
    random = np.random.default_rng(seed)
    y, y_test = arrays["y_train"], arrays["y_test"]
    classes = random.permutation(np.unique(y))[: len(LABELS)]

    def some(labels: NDArray[Any], count: int) -> NDArray[np.int64]:
        each = count // len(classes)
        return np.concatenate([random.choice(np.flatnonzero(labels == c), each, replace=False) for c in classes])

    rows = random.permutation(some(y, PICTURES))
    test = some(y_test, TESTED)
    place = {int(c): i for i, c in enumerate(classes)}
    truth, test_truth = (np.array([place[int(c)] for c in labels]) for labels in (y[rows], y_test[test]))
    of_class = [np.flatnonzero(truth == c) for c in range(len(classes))]
    labelled = np.concatenate([random.choice(of_class[c], n, replace=False) for c, n in enumerate(LABELS)])
    names = [f"class {c:03}" for c in classes]
    return Drawn(arrays["x_train"][rows], truth, labelled, arrays["x_test"][test], test_truth, names)


def run(*arguments: object) -> None:
    """A command of the shell, in silence."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = cadr([str(argument) for argument in arguments])
    assert status == 0, said.getvalue()


def write(path: Path, drawn: Drawn, labelled: NDArray[np.int64]) -> Path:
    y = np.full(len(drawn.truth), -1)
    y[labelled] = drawn.truth[labelled]
    np.savez(
        path,
        x_train=drawn.pictures,
        y_train=y,
        x_test=drawn.test_pictures,
        y_test=drawn.test_truth,
        class_names=np.array(drawn.names),
    )
    return path


def accuracy(folder: Path) -> float:
    """On the test pictures."""
    return float(result(folder)["last"])


def trained(folder: Path, drawn: Drawn, labelled: NDArray[np.int64], seed: int) -> float:
    data = write(folder.with_suffix(".npz"), drawn, labelled)
    run("train", data, "--features", FEATURES, "--seed", seed, "--out", folder)
    return accuracy(folder)


@contextlib.contextmanager
def served(session: Session) -> Iterator[Server]:
    server = Server(session)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer_by_requests(server: Server, name_of: Callable[[int], str]) -> None:
    for _ in range(MORE):
        row = server.session.state()["example"]["row"]
        body = json.dumps({"row": row, "label": name_of(row)}).encode()
        origin = f"http://127.0.0.1:{server.server_port}"
        headers = {"Content-Type": "application/json", "Origin": origin, "Sec-Fetch-Site": "same-origin"}
        with urllib.request.urlopen(urllib.request.Request(server.address + "label", body, headers)) as answer:
            assert answer.status == 200


def answer_by_keys(server: Server, name_of: Callable[[int], str]) -> None:
    """In Chromium, without a mouse: the key of a guess, or a search for what is not among them."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(server.address)
        for passed in range(MORE):
            while not page.evaluate(f"state !== null && state.passed === {passed} && !busy"):
                page.wait_for_timeout(20)
            example = server.session.state()["example"]
            name, guesses = name_of(example["row"]), [guess for guess, _ in example["guesses"]]
            if name in guesses:
                page.keyboard.press(str(guesses.index(name) + 1))
            else:
                page.keyboard.press("/")
                page.keyboard.type(name)
                page.keyboard.press("Enter")
        while not page.evaluate(f"state.passed === {MORE} && !busy"):
            page.wait_for_timeout(20)
        assert page.is_visible("#implied")  # what the answers say about the sizes of the classes
        browser.close()


def of_seed(arrays: Mapping[str, NDArray[Any]], seed: int, in_browser: bool) -> dict[str, Any]:
    torch.set_num_threads(1)
    drawn = draw(arrays, seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data = write(folder / "photos.npz", drawn, drawn.labelled)
        run("diagnose", data, "--features", FEATURES)
        run("train", data, "--features", FEATURES, "--seed", seed, "--out", folder / "run")
        opened = open_run(folder / "run", device="cpu")
        unsure = opened.rows[least_sure(opened.probabilities)[:MORE]]
        session = Session(folder / "run", device="cpu")
        with served(session) as server:
            (answer_by_keys if in_browser else answer_by_requests)(server, lambda row: drawn.names[drawn.truth[row]])
        assert session.state()["labelled"] == MORE
        with contextlib.redirect_stdout(io.StringIO()):
            session.train()  # the button of the page: the command with --continue-from
            session.trainer.wait()
        assert session.state()["training"]["problem"] == "", session.state()["training"]
        run("report", folder / "run-2", "--out", folder / "report.html")
        random = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(PICTURES), drawn.labelled))
        return {
            "before": accuracy(folder / "run"),
            "chosen": accuracy(folder / "run-2"),
            "least sure": trained(folder / "unsure", drawn, np.union1d(drawn.labelled, unsure), seed),
            "random": trained(folder / "random", drawn, np.union1d(drawn.labelled, random[:MORE]), seed),
            "twice as many": trained(folder / "twice", drawn, np.union1d(drawn.labelled, random[: 2 * MORE]), seed),
            "in Chromium": in_browser,
        }


def build(record: dict[str, Any]) -> str:
    seeds = record["seeds"]
    lines = []
    for way, words in WAYS.items():
        values = [one[way] for one in seeds.values()]
        cells = [f"{value:.1f}" for value in values]
        lines.append([words, *cells, f"{statistics.mean(values):.1f}"])
    what = (
        f"Accuracy (%) on {TESTED} test pictures of ten classes of {record['data']}, by seed; there are {PICTURES} "
        f"pictures to learn from. Written by `python benchmarks/labelling.py`."
    )
    return f"{what}\n\n{markdown(['labels', *(f'seed {seed}' for seed in seeds), 'mean'], lines)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--out", type=Path, default=RECORD)
    asked = parser.parse_args()
    with np.load(asked.data) as file:
        arrays = {name: file[name] for name in file.files}
    record: dict[str, Any] = {"data": asked.data.stem, "features": FEATURES, "labels": LABELS, "seeds": {}}
    for seed in asked.seeds:
        record["seeds"][str(seed)] = of_seed(arrays, seed, in_browser=seed == asked.seeds[0])
        print(seed, record["seeds"][str(seed)], flush=True)
        asked.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    asked.out.with_suffix(".md").write_text(build(record), encoding="utf-8")


if __name__ == "__main__":
    main()
