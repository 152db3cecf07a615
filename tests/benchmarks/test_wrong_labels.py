"""The table of wrong labels is that of its record, and most are found where a prediction finds next to none."""

import json

from benchmarks.wrong_labels import OUT, RECORD, build

RECORDS = json.loads(RECORD.read_text(encoding="utf-8"))


def total(name: str, wrong: bool) -> int:
    return sum(r[name] for r in RECORDS if r["wrong"] is wrong)


def test_the_committed_table_is_that_of_the_committed_record():
    assert OUT.read_text(encoding="utf-8") == build(RECORDS)


def test_most_wrong_labels_are_found_among_those_trained_on():
    planted = total("trained_wrong", True)
    assert total("found", True) > 0.6 * planted
    assert total("found_by_prediction", True) < 0.1 * planted


def test_few_right_labels_are_doubted():
    for wrong in (True, False):
        assert total("false", wrong) < 0.1 * (total("trained", wrong) - total("trained_wrong", wrong))
