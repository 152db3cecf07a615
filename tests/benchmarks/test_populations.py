"""The table of populations is that of its record, and what the documentation says of it holds."""

import json
from statistics import fmean

from benchmarks import populations

FOUND = json.loads(populations.RECORD.read_text(encoding="utf-8"))
_, EQUAL, DIAGNOSED, OURS = populations.METHODS


def means(method: str, figure: str = "accuracy") -> list[float]:
    return [fmean(found[method][figure]) for found in FOUND["settings"].values()]


def gains(figure: str) -> list[float]:
    pairs = zip(means(DIAGNOSED, figure), means(EQUAL, figure), strict=True)
    return [told - untold for told, untold in pairs]


def test_the_committed_table_is_that_of_the_committed_record():
    assert list(FOUND["settings"]) == list(populations.SETTINGS)
    assert populations.RECORD.with_suffix(".md").read_text(encoding="utf-8").endswith(f"\n{populations.table(FOUND)}\n")


def test_what_is_said_of_it():
    text = populations.RECORD.parents[1].joinpath("docs", "cadr.md").read_text(encoding="utf-8")
    page = " ".join(text.split())
    assert len(FOUND["settings"]) == 17
    best, worst, recall = max(gains("accuracy")), -min(gains("accuracy")), -min(gains("recall"))
    assert f"In seventeen populations that gained up to {best:.0f} points of accuracy" in page
    assert f"and lost up to {worst:.0f} of accuracy and {recall:.0f} of mean recall" in page
    ours, cadr = means(OURS), means(DIAGNOSED)
    assert f"it has {fmean(ours):.1f} % in the mean over seventeen populations, CADR {fmean(cadr):.1f} %" in page
    assert sum(a > b for a, b in zip(ours, cadr, strict=True)) == 10
