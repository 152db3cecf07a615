"""What a few more labels are worth: the table is that of its record, and the documentation says what is in it."""

from __future__ import annotations

import json

from benchmarks import more_labels


def test_the_committed_table_is_that_of_the_committed_record():
    record = json.loads(more_labels.RECORD.read_text(encoding="utf-8"))
    assert more_labels.OUT.read_text(encoding="utf-8") == more_labels.build(record)


def test_what_is_said_of_it():
    seeds = json.loads(more_labels.RECORD.read_text(encoding="utf-8"))["seeds"].values()
    mean = {name: sum(one[name]["accuracy"] for one in seeds) / len(seeds) for name in next(iter(seeds))}
    said = (more_labels.ROOT / "docs" / "report.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"from {mean['none']:.1f} to {mean['least sure, 10']:.1f} %" in said
    assert f"ten of any examples to {mean['any, 10']:.1f} %" in said
    assert f"thirty to {mean['least sure, 30']:.1f} % against {mean['any, 30']:.1f} %" in said
    assert f"{len(seeds)} seeds" in said
