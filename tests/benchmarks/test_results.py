"""RESULTS.md from records alone."""

import json

import pytest
from benchmarks.cells import power
from benchmarks.matched import matched_accuracy

from benchmarks import alike, figure3, results
from cadr.cli.recipes import Row, read_rows

ROWS = read_rows(results.RECIPE) + read_rows(results.SUCCESSORS)
ELSEWHERE = {"what": "FixMatch elsewhere", "steps": 2**20, "hours": 16, "hardware": "four V100", "source": "https://x"}


def record(row, steps=2**17, seed=1, accuracy=90.0, **more):
    return {
        **{"dataset": "cifar10", "algorithm": row.rpartition("-")[2], "options": {}, "steps": steps, "seed": seed},
        **{"row": row, "overrides": {}, "gamma": 50.0, "abreast": 1, "file": f"{row}-steps{steps}-seed{seed}.json"},
        **{"last": 1.0, "mean_10": 2.0, "median_10": accuracy, "median_20": 4.0, "best": 5.0, "gm": 88.5},
        "recall": [99.0, 78.04],
        **{
            "seconds": 900.0,
            "ms_per_step": 6.5,
            "peak_memory_gib": 2.0,
            "torch": "2.13.0",
            "commit": "abcdef0123456789",
        },
        **{"device": "NVIDIA H200", "curve": [[1, 10.0], [steps, accuracy]], "confusion": [[9, 1], [2, 8]]},
        **more,
    }


def build(*records):
    return results.build(ROWS, records, ELSEWHERE, with_figure=False)


def table(text, heading, steps):
    """Header and body of the table under a heading whose own columns are of this length, as lists of cells."""
    section = text.split(f"## {heading}")[1].split("\n## ")[0]
    for block in section.split("\n\n"):
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in block.splitlines() if "|" in line]
        if lines and any(f"ours, {steps} steps" in cell for cell in lines[0]):
            return lines[0], {line[0]: line[1:] for line in lines[2:]}
    raise AssertionError(f"{heading} has no table of {steps} steps")


def test_without_records_every_cell_is_visibly_empty_and_nothing_is_claimed():
    text = build()
    assert "has no record yet, so nothing is claimed" in text.split("\n\n")[1]
    for heading in ("Table 1", "Table 2", "Table 3", "Ablation: momentum", "Ablation: exponent", "Figure 4a"):
        header, body = table(text, heading, "2^17")
        for cells in body.values():
            ours = [cell for cell, name in zip(cells, header[1:], strict=True) if "ours" in name]
            assert set(ours) == {"·"}
    assert table(text, "Table 4", "2^20")[1]["FixMatch"][0] == "88.61 ± 3.35"


def test_the_first_sentence_is_computed():
    exchanged = [[100, 0, 0], [0, 2, 98], [0, 99, 1]]
    cadr = [record("cifar10-gamma50-cadr", seed=s, accuracy=a) for s, a in ((1, 93.0), (2, 94.0))]
    cadr.append(record("cifar10-gamma50-cadr", seed=3, accuracy=34.0, confusion=exchanged))
    text = build(*cadr, record("cifar10-gamma50-fixmatch", accuracy=66.0))
    assert text.split("\n\n")[1] == (
        "On CIFAR-10, γ = 50, CADR (published with 93.79 %) reaches **93.00 %** (seed 1), **94.00 %** (seed 2) and "
        "**34.00 %** (seed 3, which swapped classes: 99.00 % if they were matched) in **15.0 min** on one NVIDIA H200, "
        "FixMatch (published with 65.61 %), trained in the same way, 66.00 % (seed 1); as many steps of FixMatch "
        "elsewhere take 2.0 hours on four V100 ([as its issue tracker says](https://x))."
    )


def test_names_put_right_have_a_line_of_their_own_beside_cadr():
    renamed = record("cifar10-gamma100-cadr-renaming", accuracy=94.0)
    header, body = table(build(renamed, record("cifar10-gamma100-cadr", accuracy=75.0)), "Table 1", "2^17")
    at = header.index("CIFAR-10, γ = 100: ours, 2^17 steps") - 1
    assert body["+ CADR"][at].startswith("**75.00** (n = 1,")
    assert body["+ CADR, names put right (ours)"][at - 1 : at + 1] == [
        "·",
        "**94.00** (n = 1, 2^17 steps, 15.0 min, NVIDIA H200)",
    ]


def test_a_cell_has_n_spread_steps_minutes_and_hardware_beside_the_published_number():
    records = [record("cifar10-gamma50-cap", seed=s, accuracy=a) for s, a in ((1, 89.0), (2, 90.0), (3, 91.0))]
    text = build(*records)
    expected = ["89.50", "**90.00 ± 1.00** (n = 3, 2^17 steps, 15.0 min, NVIDIA H200)"]
    assert table(text, "Table 2", "2^17")[1]["+ CAP"][2:4] == expected
    assert table(text, "Table 3", "2^17")[1]["+ CAP"] == expected
    assert table(text, "Ablation: momentum", "2^17")[1]["μ = 0.99"] == expected


def test_a_cell_says_which_seeds_where_they_are_not_the_first():
    two, three = (record("cifar10-gamma50-cadr", seed=seed) for seed in (2, 3))
    assert "(n = 1, seed 2, 2^17 steps" in build(two)
    assert "(n = 2, seeds 2 and 3, 2^17 steps" in build(two, three)
    assert "(n = 3, 2^17 steps" in build(three, record("cifar10-gamma50-cadr"), two)


def test_minutes_are_those_of_runs_that_had_the_gpu_to_themselves():
    shared = record("cifar10-gamma50-cadr", seed=1, seconds=1500.0, abreast=2)
    assert "(n = 1, 2^17 steps, 25.0 min, 2 abreast, NVIDIA H200)" in build(shared)
    assert "(n = 2, 2^17 steps, 15.0 min alone, NVIDIA H200)" in build(shared, record("cifar10-gamma50-cadr", seed=2))
    more = record("cifar10-gamma50-cadr", seed=2, abreast=4)
    assert "(n = 2, 2^17 steps, 20.0 min, 4 abreast, NVIDIA H200)" in build(shared, more)


def test_lengths_never_share_a_column():
    text = build(record("cifar10-gamma50-cadr"), record("cifar10-gamma50-cadr", steps=2**15, accuracy=80.0))
    assert table(text, "Table 1", "2^17")[1]["+ CADR"][3].startswith("**90.00**")
    assert table(text, "Table 1", "2^15")[1]["+ CADR"][1].startswith("**80.00** (n = 1, 2^15 steps")
    assert "80.00" not in text.split("\n\n")[1]


def test_a_changed_run_fills_no_cell_but_is_listed():
    changed = record("cifar10-gamma50-cadr", accuracy=77.0, overrides={"form": "pinv"})
    text = build(changed, record("", accuracy=55.0))
    assert table(text, "Table 1", "2^17")[1]["+ CADR"][3] == "·"
    variants = text.split("## Variants")[1].split("\n## ")[0]
    assert "| cifar10-gamma50-cadr | form = pinv | 1 | 77.00 | 88.50 | 15.0 min | NVIDIA H200 |" in variants
    assert "55.00" in variants


def test_recall_by_class_is_shown_where_it_decides():
    assert "Recall by class" not in build(record("cifar10-unlabelled-inverse20-cadr"))
    text = build(record("cifar10-gamma100-cadr", gamma=100.0), record("cifar10-gamma20-cadr", gamma=20.0))
    section = text.split("## Recall by class")[1].split("\n## ")[0]
    lines = section.split("### 2^17 steps\n\n")[1].splitlines()
    assert lines[2:4] == [f"| cifar10-gamma{gamma}-cadr | 1 | 99.0 | 78.0 | 1.00 | 85.00 |" for gamma in (20, 100)]


@pytest.mark.parametrize("heading", ["Recall by class", "Variants", "Every record"])
def test_listings_hold_one_length_a_table(heading):
    rows = ["cifar10-gamma50-cadr", "cifar10-gamma50-fixmatch"]
    changed = {"beta": 0.1} if heading == "Variants" else {}
    text = build(*(record(row, steps=steps, overrides=changed) for steps in (2**15, 2**17) for row in rows))
    section = text.split(f"## {heading}")[1].split("\n## ")[0]
    assert [part.split()[0] for part in section.split("\n### ")[1:]] == ["2^17", "2^15"]
    for part in section.split("\n### ")[1:]:
        assert all(part.count(f"| {row} |") + part.count(f"| [{row}-") == 1 for row in rows)


def test_names_that_are_exchanged_show():
    cycle = [[2, 7, 0, 1], [1, 1, 8, 0], [9, 0, 1, 0], [0, 2, 3, 5]]  # 0 is called 1, 1 is called 2, 2 is called 0
    assert matched_accuracy(cycle) == pytest.approx(100 * (7 + 8 + 9 + 5) / 40)
    lost = [[9, 1, 0], [1, 9, 0], [8, 2, 0]]  # 2 is called 0, and nothing is called 2
    assert matched_accuracy(lost) == pytest.approx(100 * 18 / 30)
    text = build(record("cifar10-gamma100-cadr", last=15.0, confusion=[[1, 9], [8, 2]]))
    assert "| 99.0 | 78.0 | 15.00 | 85.00 |" in text.split("## Recall by class")[1]
    assert "| 15.00 | 85.00 | 2.00 |" in text.split("## Every record")[1]
    assert "| 15.00 | · | 2.00 |" in build(record("", last=15.0, confusion=None)).split("## Every record")[1]


def test_figure_4_shows_the_geometric_mean_and_runs_abreast_say_so():
    text = build(record("cifar10-unlabelled-inverse20-cadr", steps=2**15, abreast=4))
    header, body = table(text, "Figure 4a", "2^15")
    assert header[1:] == ["CIFAR-10, γ_u = 1/20: ours, 2^15 steps"]
    expected = "**90.00 / GM 88.50** (n = 1, 2^15 steps, 15.0 min, 4 abreast, NVIDIA H200)"
    assert body["+ CADR"] == [expected]
    assert body["+ CADR, known class priors"] == ["·"]


def test_every_method_at_one_length_with_its_cost_where_it_compares():
    fixmatch = record("cifar10-gamma50-fixmatch", steps=2**15, accuracy=60.0, recall=[90.0, 3.0, 1.0])
    prg = record("cifar10-gamma50-prg", steps=2**15, accuracy=80.0, ms_per_step=13.0)
    beside = record("cifar10-gamma50-cadr", steps=2**15, accuracy=90.0, abreast=2)
    harder = [record(f"cifar10-gamma50-{row}", steps=2**15, accuracy=50.0, seed=2) for row in ("prg", "cap")]
    text = build(fixmatch, prg, beside, record("cifar10-gamma50-dash"), *harder)
    section = text.split("## Every method")[1].split("\n## ")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    assert [line[0] for line in lines[2:]] == ["cadr", "prg", "fixmatch"]
    assert [line[5] for line in lines[2:]] == ["·", "2.00×", "1.00×"]
    assert lines[4][1:4] == ["**60.00**", "88.50", "3.0 and 1.0"]
    missing = section.split("Not run yet at this length: ")[1]
    assert "dash" in missing
    assert "beta" not in missing
    assert "prg," not in missing
    assert "cap," in missing


def test_what_is_not_alike_is_said_as_the_recipes_have_it():
    base = {"data": "digits", "protocol": "mcar", "n": 10, "steps": 2**17}

    def row(name, **values):
        return Row(f"cifar10-gamma50-{name}", alike.SETTING, base | values)

    rows = [
        row("fixmatch", algorithm="fixmatch"),
        row("mixmatch", algorithm="mixmatch", ratio=2, alpha=0.3),
        row("prg", algorithm="prg", steps=2**15, ratio=7),  # as everybody has it
        row("crest", algorithm="crest", generations=3),
        row("pi-model", algorithm="pi_model", ratio=2),
    ]
    assert alike.exceptions(rows) == "`ratio = 2` (mixmatch, pi-model); `generations = 3` (crest)"
    assert alike.exceptions(ROWS) in build()


def test_the_ablation_tells_its_two_thresholds_apart():
    body = table(build(), "Ablation: exponent", "2^17")[1]
    assert [name[:7] for name in body] == ["β = 0.2", "β = 0.5", "β = 1", "β = 0.5"]
    assert list(table(build(), "Ablation: momentum", "2^17")[1]) == [f"μ = {value}" for value in (0.999, 0.99, 0.9, 0)]
    assert (body["β = 0.5"][0], body["β = 0.5, rarity by the labels' counts"][0]) == ("88.15", "71.86")


def test_other_data_sets_appear_once_they_have_a_record():
    assert "CIFAR-100" not in build()
    assert "CIFAR-100, γ = 50: ours" in build(record("cifar100-gamma50-cadr"))


@pytest.mark.parametrize(
    ("steps", "text"), [(2**17, "2^17"), (2**10, "2^10"), (400, "400"), (131073, "131,073"), (512, "512")]
)
def test_lengths(steps, text):
    assert power(steps) == text


def test_the_files_are_written(tmp_path):
    for row in ("cifar10-gamma50-cadr", "cifar10-gamma50-fixmatch"):
        (tmp_path / f"{row}.json").write_text(json.dumps(record(row)))
    (tmp_path / "step-time.json").write_text(json.dumps({"ms": 3}))  # another benchmark's record
    assert figure3.main(["--records", str(tmp_path), "--out", str(tmp_path / "figure3.svg")]) == 0
    first = (tmp_path / "figure3.svg").read_bytes()
    assert figure3.main(["--records", str(tmp_path), "--out", str(tmp_path / "figure3.svg")]) == 0
    assert (tmp_path / "figure3.svg").read_bytes() == first
    assert b"<svg" in first
    assert results.main(["--records", str(tmp_path), "--out", str(tmp_path / "RESULTS.md")]) == 0
    text = (tmp_path / "RESULTS.md").read_text()
    assert "figure3.svg" in text
    assert text.count("](records/") == 2


def test_the_figure_needs_both_methods_at_one_length():
    pair = [record("cifar10-gamma50-cadr"), record("cifar10-gamma50-fixmatch", steps=2**14)]
    assert figure3.pair(pair, 1, None) is None
    both = [*pair, record("cifar10-gamma50-cadr", steps=2**14)]
    found = figure3.pair(both, 1, None)
    assert found is not None
    assert {r["steps"] for r in found.values()} == {2**14}
    assert figure3.pair(both, 1, 2**17) is None
    assert figure3.pair(both, 2, None) is None


@pytest.mark.skipif(not results.RESULTS.exists(), reason="RESULTS.md has not been built yet")
def test_a_record_of_a_changed_tree_says_so():
    ends = ("", "-dirty")
    text = build(*(record("cifar10-gamma50-cadr", seed=i, commit=f"abcdef0123456789{e}") for i, e in enumerate(ends)))
    assert [line.split(" | ")[-1] for line in text.splitlines() if "(records/" in line] == [
        "abcdef0123 |",
        "abcdef0123-dirty |",
    ]


def test_the_committed_results_are_those_of_the_committed_records(tmp_path):
    rebuilt = tmp_path / "RESULTS.md"
    if results.FIGURE.exists():
        (tmp_path / results.FIGURE.name).touch()
    assert results.main(["--out", str(rebuilt)]) == 0
    assert results.RESULTS.read_text() == rebuilt.read_text(), "run: python benchmarks/results.py"
