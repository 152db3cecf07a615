"""The table of a comparison and the sentence below it, on numbers that can be checked by hand."""

from cadr.cli.comparison import OUTSIDE, WEIGHTED, OnAllRows, columns, differences, meaning, sentences, spread, table


def runs(*pairs):
    fixed = {"seconds": 2.0, "split_sha256": "of a benchmark", "last": 0.0, "evaluated_on": "test"}
    return [{"median_10": a, "gm": g, "recall": [g, 99.0], **fixed} for a, g in pairs]


def own(*pairs):
    """On held-out labels, of somebody's own."""
    fixed = {"seconds": 2.0, "split_sha256": None, "evaluated_on": "validation"}
    return [{"last": a, "gm": g, "recall": [g, 99.0], **fixed} for a, g in pairs]


RESULTS = {
    "fixmatch": runs((80.0, 50.0), (82.0, 54.0)),
    "cap": runs((90.0, 88.0), (91.0, 89.0)),
    "cadr": runs((79.0, 60.0), (89.0, 70.0)),
}


def test_mean_and_sample_standard_deviation():
    assert spread([80.0, 82.0]) == "81.0 ± 1.4"  # sqrt(2), not 1.0 as the population's would be
    assert spread([80.0]) == "80.0"


def test_differences_are_paired_by_seed():
    assert differences(RESULTS, "cadr", "fixmatch") == [-1.0, 7.0]


def test_table():
    columns, lines = table(RESULTS, "fixmatch")
    assert columns[4] == "above FixMatch in"
    assert lines[0] == ["FixMatch", "81.0 ± 1.4", "52.0 ± 2.8", "52.0 ± 2.8", "–", "2.0"]
    assert lines[2][:2] == ["CADR", "84.0 ± 7.1"]
    assert lines[2][4] == "1 of 2 seeds"


def test_the_sentence_says_it_when_cadr_is_not_the_best():
    text = meaning(RESULTS, "fixmatch")
    assert "Highest accuracy over 2 seeds: CAP with 90.5 %." in text
    assert "CADR is 3.0 points above FixMatch (above it in 1 of 2 seeds), 13.0 more in geometric mean." in text
    assert "CADR is not the best here: CAP is 6.5 points above it." in text


def test_the_sentence_when_cadr_is_best_or_below():
    better = {"fixmatch": runs((80.0, 50.0)), "cadr": runs((90.0, 88.0))}
    assert "not the best" not in meaning(better, "fixmatch")
    assert "in one seed, which proves little: CADR" in meaning(better, "fixmatch")
    worse = {"fixmatch": runs((80.0, 50.0)), "cadr": runs((70.0, 40.0))}
    assert "CADR is 10.0 points below FixMatch, 10.0 less in geometric mean." in meaning(worse, "fixmatch")


def test_as_good_in_a_seed_is_not_above():
    level = {"fixmatch": runs((80.0, 50.0), (82.0, 54.0)), "cadr": runs((80.0, 50.0), (83.0, 54.0))}
    assert table(level, "fixmatch")[1][1][4] == "1 of 2 seeds"
    assert "(above it in 1 of 2 seeds)" in meaning(level, "fixmatch")


def test_the_sentence_on_a_tie():
    level = {"fixmatch": runs((80.0, 50.0), (90.0, 60.0)), "cadr": runs((90.0, 60.0), (80.0, 50.0))}
    assert meaning(level, "fixmatch") == (
        "Highest accuracy over 2 seeds: FixMatch and CADR with 85.0 %. CADR is as good as FixMatch (above it in 1 of 2 "
        "seeds), the same in geometric mean."
    )


def test_labels_held_out_may_not_tell_methods_apart():
    level = {"fixmatch": own((80.0, 50.0), (90.0, 60.0)), "cadr": own((90.0, 60.0), (80.0, 50.0))}
    assert meaning(level, "fixmatch", 10).endswith(
        "The held-out labels cannot tell CADR from FixMatch (above it in 1 of 2 seeds): it gets as many right, the "
        "same in geometric mean."
    )
    perfect = {"fixmatch": own((100.0, 100.0)), "cap": own((100.0, 100.0)), "cadr": own((100.0, 100.0))}
    assert meaning(perfect, "fixmatch", 7) == (
        "Highest accuracy in one seed, which proves little: FixMatch and CAP and CADR with 100.0 %. All get every "
        "held-out label right, so these cannot tell the methods apart."
    )


def test_a_difference_of_less_than_a_label_may_be_chance():
    close = {"fixmatch": own((80.0, 50.0), (80.0, 50.0)), "cadr": own((80.0, 50.0), (90.0, 60.0))}
    chance = "That is less than one held-out label, and may be chance."
    assert chance in meaning(close, "fixmatch", 10)  # 5 points, of 10 each
    assert chance not in meaning(close, "fixmatch", 20)
    assert chance not in meaning(close, "fixmatch")  # it is not known how many were held out
    benchmark = {"fixmatch": runs((80.0, 50.0)), "cadr": runs((80.5, 50.0))}
    assert chance not in meaning(benchmark, "fixmatch", 100)


def test_what_labels_of_ones_own_say_of_all_rows():
    found = {
        "cap": [OnAllRows(70.0, ["a", "b"]), OnAllRows(80.0, ["b"])],
        "cadr": [OnAllRows(80.0, []), OnAllRows(85.0, [])],
    }
    added = columns(found)
    assert added == {
        WEIGHTED: {"cap": "75.0 ± 7.1", "cadr": "82.5 ± 3.5"},
        OUTSIDE: {"cap": "'b' (2), 'a' (1)", "cadr": "none"},
    }
    header, lines = table({"cap": own((90.0, 88.0)), "cadr": own((91.0, 89.0))}, "cap", added)
    assert header[1:4] == ["accuracy, %", "weighted, %", "geometric mean, %"]
    assert lines[0][1:4] == ["90.0", "75.0 ± 7.1", "88.0"]
    assert (header[-1], lines[0][-1]) == ("shares outside", "'b' (2), 'a' (1)")
    weighted, shares = sentences(found)
    assert weighted.endswith("so that classes count as in all rows. Highest there: CADR with 82.5 %.")
    assert shares.startswith("Shares outside: classes (in so many seeds) whose predicted share")


def test_what_is_not_known_is_left_out():
    assert (columns({}), sentences({})) == ({}, [])  # a benchmark
    tested = {"cap": [OnAllRows(None, [])], "cadr": [OnAllRows(None, [*"abcde"])]}  # on a test set of one's own
    assert columns(tested) == {OUTSIDE: {"cap": "none", "cadr": "'a', 'b', 'c' and 2 more"}}
    (shares,) = sentences(tested)
    assert shares.startswith("Shares outside: classes whose predicted share")
