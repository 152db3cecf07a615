"""What docs/speed.md says of kept memory is what was measured."""

import json

from benchmarks import freed_memory

PAGE = freed_memory.ROOT / "docs" / "speed.md"


def test_the_table_is_the_records():
    cases = json.loads(freed_memory.RECORD.read_text(encoding="utf-8"))["cases"]
    assert list(cases) == list(freed_memory.CASES)
    page = PAGE.read_text(encoding="utf-8")
    for case, measured in cases.items():
        left, kept = measured["left alone"], measured["kept"]
        digits = 0 if kept["ms"] > 10 else 1
        assert f"| {case} | {left['ms']:,.{digits}f} | {kept['ms']:,.{digits}f} |" in page
        assert kept["mib"] < 1.5 * left["mib"]  # "at most half as much memory again"
