"""The table of a comparison and the sentence below it, on numbers that can be checked by hand."""

from cadr.cli.comparison import differences, meaning, spread, table


def runs(*pairs):
    fixed = {"seconds": 2.0, "split_sha256": "of a benchmark", "last": 0.0}
    return [{"median_10": a, "gm": g, "recall": [g, 99.0], **fixed} for a, g in pairs]


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
