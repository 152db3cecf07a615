"""Files of splits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.data.loose import PROTOCOLS, Pool, Split, apply, make_split
from tests.data.malformed.case import FEATURES, LABELS, case, several

POOL = Pool(FEATURES, LABELS, ("a", "b"), "tiny")
SPLIT = make_split(POOL, PROTOCOLS["mcar"](n=4), seed=1)


def split_file(folder: Path, content: Any) -> Callable[[], Any]:
    path = folder / "split.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return lambda: apply(POOL, Split.read(path))


SPLIT_CONTENT = {**SPLIT._content(), "sha256": SPLIT.sha256}


@several(
    "SplitError",
    {
        "that is text": (b"hello", "not a split", "JSON"),
        "that is binary": (b"\xff\xfe\x00", "not a split"),
        "nested without end": (b"[" * 100_000, "not a split"),
        "that is a list": ([1, 2], "expected an object, got list"),
        "without its rows": ({k: v for k, v in SPLIT_CONTENT.items() if k != "labelled"}, "lacks labelled"),
        "with something more": ({**SPLIT_CONTENT, "extra": 1}, "unknown 'extra'"),
        "with another seed": ({**SPLIT_CONTENT, "seed": 2}, "has been changed"),
        "with another hash": ({**SPLIT_CONTENT, "sha256": "0" * 64}, "has been changed"),
        "with a seed that is text": ({**SPLIT_CONTENT, "seed": "1"}, "seed should be a int"),
        "with rows twice": ({**SPLIT_CONTENT, "labelled": [1, 1]}, "labelled should be rising"),
        "without any row": ({**SPLIT_CONTENT, "labelled": []}, "at least one"),
        "with rows that are text": ({**SPLIT_CONTENT, "labelled": ["1"]}, "whole numbers"),
        "with negative rows": ({**SPLIT_CONTENT, "labelled": [-1, 2]}, "whole numbers"),
        "with a stream of text": ({**SPLIT_CONTENT, "unlabelled": "some"}, "unlabelled should be a list"),
    },
    words=("split.json",),
)
def split(folder, content):
    return split_file(folder, content)


@case("SplitError", "split.json", "No such file")
def split_that_is_not_there(folder):
    return lambda: Split.read(folder / "split.json")
