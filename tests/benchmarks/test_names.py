"""The table of names is that of its records, and what the documentation says of it holds."""

import json
from statistics import mean
from typing import Any

import numpy as np
from benchmarks.cells import read_records
from benchmarks.matched import matched_accuracy

from benchmarks import names, renaming, right_names
from cadr.cli.recipes import read_rows


def said_in(page: str) -> str:
    return " ".join((names.ROOT / "docs" / page).read_text(encoding="utf-8").split())


def table_of(benchmark: Any) -> Any:
    """Its records, of which its committed table is made."""
    records = json.loads(benchmark.RECORD.read_text(encoding="utf-8"))
    assert benchmark.OUT.read_text(encoding="utf-8") == benchmark.build(records)
    return records


def results(steps: int, seed: int) -> dict[str, Any]:
    """The records of results by row, as it stands in its recipe or else with what was changed."""
    records = read_records(names.ROOT / "benchmarks" / "records")
    alike = [r for r in records if (r["steps"], r["seed"]) == (steps, seed)]
    return {", ".join([r["row"], *(f"{key} {value}" for key, value in r["overrides"].items())]): r for r in alike}


def test_the_committed_table_is_that_of_the_committed_records():
    assert names.OUT.read_text(encoding="utf-8") == names.build(read_records(names.RECORDS))


def test_what_is_said_of_it():
    """docs/reproduce.md: the shares of the commonest and of the rarest label in P̂, and which methods find them."""
    records = read_records(names.RECORDS)
    cadr, without, resampled, anchored = (
        {r["seed"]: r for r in records if r["row"] == f"cifar10-gamma100-{row}"}
        for row in ("cadr", "cap-cai", "cadr-resampling", "cap-cai-anchoring")
    )
    assert [len(cadr), len(without), len(resampled), len(anchored)] == [8, 4, 4, 3]
    assert all(0.155 < r["prior"][0] < 0.195 and 0.01 < r["prior"][-1] < 0.055 for r in cadr.values())
    assert all(0.08 < r["prior"][c] < 0.115 for r in without.values() for c in (0, -1))
    better = [seed for seed, r in without.items() if sum(r["recall"][-2:]) > 2 * sum(cadr[seed]["recall"][-2:])]
    assert better == [101, 103, 104]
    for other, means in ((resampled, ["39.3", "26.3"]), (anchored, ["42.9", "24.8"])):
        assert all(r["gm"] > cadr[seed]["gm"] for seed, r in other.items())
        same = [cadr[seed] for seed in other]
        assert [f"{mean(r['gm'] for r in these):.1f}" for these in (other.values(), same)] == means


def test_what_is_said_of_longer_runs():
    page = said_in("reproduce.md")
    first, second = results(2**15, 1), results(2**15, 2)
    one, two = (records["cifar10-gamma50-cap-cai-anchoring"] for records in (first, second))
    ships, trucks = two["recall"][-2:]
    assert f"({ships:.1f} and {trucks:.1f} % are found)" in page
    assert f"the accuracy is {two['median_10']:.1f} %" in page
    cadr = first["cifar10-gamma50-cadr"]
    anchored, exchanged = (records["cifar10-gamma50-cadr-anchoring"] for records in (first, second))
    assert f"labels has {one['median_10']:.1f} % after 2^15 steps" in page
    assert f"(`cadr_anchoring`) {anchored['median_10']:.1f} %, CADR {cadr['median_10']:.1f} %" in page
    matched = matched_accuracy(exchanged["confusion"])
    assert f"({exchanged['median_10']:.1f} %; {matched:.1f} % if names were matched)" in page


def test_what_is_said_of_the_parts():
    page = said_in("reproduce.md")
    records = results(2**17, 1)
    *parts, cadr = (records[f"cifar10-gamma50-{row}"] for row in ("cap", "cai", "cap-cai", "cadr"))
    said = "{:.1f}, {:.1f} and {:.1f} %".format(*(r["median_10"] for r in parts))
    assert f"**CAP, CAI and both together at γ = 50 reach {said}, published are 89.5, 88.2 and 89.5 %**" in page
    assert f"CADR with the same seed ({cadr['median_10']:.1f} %)" in page
    assert f"by each of them ({min(min(r['recall']) for r in parts):.1f} % and more)" in page


def test_what_is_said_of_runs_abreast():
    page, records = said_in("reproduce.md"), results(2**15, 1)
    alone = json.loads((names.ROOT / "benchmarks" / "step_time.json").read_text(encoding="utf-8"))["steps"]["cap"]["ms"]
    said = []
    for abreast, rows in (
        (3, ("cap-mu0.9", "cap-mu0", "supervised")),
        (4, ("reweighting", "logit-adjustment", "crest", "prg-last")),
    ):
        alike = [records[f"cifar10-gamma50-{row}"] for row in rows]
        assert {r["abreast"] for r in alike} == {abreast}
        times = [r["ms_per_step"] for r in alike]
        said += [f"{mean(times):.1f} ms", f"{1 / sum(1 / t for t in times):.1f} ms for each step of the"]
    assert (
        f"took {said[0]} a step each beside each other, {said[1]} three; four others {said[2]}, {said[3]} four;" in page
    )
    assert f"CAP alone takes {alone:.1f} ms" in page


def test_what_is_said_of_the_ablations():
    page, records = said_in("reproduce.md"), results(2**15, 1)
    published = {row.name: row.published for row in read_rows(names.ROOT / "recipes" / "hu2022.toml")}
    small, counts, half, one, slow, usual, fast, batch = (
        (f"{records[row]['median_10']:.1f}", f"{published[row]:.2f}", records[row]["recall"])
        for name in (
            "cai-beta0.2",
            "cai-beta-label",
            "cai",
            "cai-beta1.0",
            "cap-mu0.999",
            "cap",
            "cap-mu0.9",
            "cap-mu0",
        )
        for row in [f"cifar10-gamma50-{name}"]
    )
    assert f"With β = 0.2 CAI has {small[0]} % (published: {small[1]} % after 2^17 steps)" in page
    assert f"of which {small[2][3]} and {small[2][5]} % are found" in page
    assert f"instead of P̂ it has {counts[0]} % ({counts[1]} %)" in page
    assert f"in the end {counts[2][0]} % of the aeroplanes are found" in page
    assert f"β = 0.5 and 1 have {half[0]} and {one[0]} % ({half[1]} and {one[1]} %)" in page
    assert f"0.999, 0.99 and 0.9 have {slow[0]}, {usual[0]} and {fast[0]} %, no moving average" in page
    assert f"the batch itself) {batch[0]} % (published: {slow[1]}, {usual[1]}, {fast[1]} and {batch[1]} %)" in page


def test_what_is_said_of_imbalanced_unlabelled_classes():
    page, records = said_in("reproduce.md"), results(2**15, 1)

    def shown(setting, row):
        record = records[f"cifar10-unlabelled-{setting}-{row}"]
        return f"{record['median_10']:.1f} % ({record['gm']:.1f})"

    for setting in ("inverse100", "inverse20", "100", "20"):
        said = "FixMatch {}, CADR {}, known priors {}."
        assert said.format(*(shown(setting, row) for row in ("fixmatch", "cadr", "cadr-target"))) in page
        fixmatch, cadr, told = (
            records[f"cifar10-unlabelled-{setting}-{row}"] for row in ("fixmatch", "cadr", "cadr-target")
        )
        assert cadr["gm"] > fixmatch["gm"]
        assert (cadr["median_10"] > fixmatch["median_10"]) == (setting == "inverse20")
        assert (told["median_10"] > fixmatch["median_10"]) == (setting != "20")
    lost, found = (records[f"cifar10-unlabelled-inverse20-{row}"] for row in ("fixmatch", "cadr-target"))
    assert f"Of 1,000 ships FixMatch calls {lost['confusion'][8][0]} aeroplanes" in page
    assert f"of 1,000 trucks {lost['confusion'][9][1]} cars" in page
    assert "with known priors finds {} and {} % of them.".format(*found["recall"][8:]) in page
    inverse = records["cifar10-unlabelled-inverse100-fixmatch"]["confusion"]
    assert inverse[8][0] == inverse[9][1]
    assert f"FixMatch calls {inverse[8][0]} of 1,000 ships aeroplanes and as many trucks cars" in page
    plain = records["cifar10-unlabelled-100-cadr"]
    assert f"it ends with {100 * plain['prior'][0]:.1f} % aeroplanes in P̂, where 40 % of the images" in page
    assert f"finds {plain['recall'][0]:.1f} % of them" in page
    told, fixmatch = (records[f"cifar10-unlabelled-20-{row}"] for row in ("cadr-target", "fixmatch"))
    sizes = np.array(told["options"]["target_prior"])
    assert np.abs(np.array(told["prior"]) - sizes / sizes.sum()).max() < 0.02
    mixed = told["confusion"]
    assert f"calls {mixed[6][4]} of 1,000 frogs deer and {mixed[4][6]} of 1,000 deer frogs" in page
    assert f"finds {fixmatch['recall'][6]:.1f} % of them" in page
    assert max(told["recall"][8:] + fixmatch["recall"][8:]) < 3


def test_what_is_said_of_labels_missing_at_random():
    page, records = said_in("reproduce.md"), results(2**17, 1)
    published = {row.name: row for row in read_rows(names.ROOT / "recipes" / "hu2022.toml")}
    for labels in (40, 250):
        rows = [f"cifar10-mcar{labels}-{row}" for row in ("cadr", "fixmatch")]
        ours = "CADR has {:.1f} %, FixMatch {:.1f} %".format(*(records[r]["median_10"] for r in rows))
        theirs, rivals = (published[r] for r in rows)
        published_too = f"{theirs.published} and {rivals.published} ± {rivals.published_sd} %"
        assert f"**{labels} labels: {ours}** (published: {published_too})" in page
        found = records[rows[0]]["recall"] + (records[rows[1]]["recall"] if labels == 250 else [])
        assert min(found) > 80
    assert f"CADR finds every class ({min(records['cifar10-mcar40-cadr']['recall'])} % and more)" in page
    birds = records["cifar10-mcar40-fixmatch"]["confusion"][2]
    assert f"{birds[0]} of 1,000 are called aeroplanes, {birds[2]} birds" in page


def test_what_is_said_of_what_the_paper_leaves_open():
    page, records = said_in("reproduce.md"), results(2**15, 1)
    plain, inverse, valid, learned = (
        records[f"cifar10-gamma50-cadr{changed}"]
        for changed in ("", ", form pinv", ", propensity class", ", strong ctaugment")
    )
    assert f"CADR at γ = 50, seed 1, has {plain['median_10']:.1f} %" in page
    assert f"(`--form pinv`) has {inverse['median_10']:.1f} %.** Both find all ten classes" in page
    assert min(inverse["recall"] + plain["recall"]) > 70
    early, late = (dict(record["curve"]) for record in (inverse, plain))
    assert f"it has {early[12288]:.1f} % after 12,288 steps, where straight-through has {late[12288]:.1f} %" in page
    assert f"and {early[16384]:.1f} % after 16,384" in page
    assert f"(`--propensity class`) have {valid['median_10']:.1f} %**: trucks" in page
    assert f"({valid['recall'][9]:.1f} %; {valid['confusion'][9][8]} of 1,000 are called ships)" in page
    assert f"which is what the authors have, has {learned['median_10']:.1f} %.**" in page
    apart = np.abs(np.array(learned["recall"]) - plain["recall"]).max()
    assert f"within {apart:.1f} points each" in page
    early = dict(learned["curve"])
    assert f"{early[5376]:.1f} % after 5,376 steps, where RandAugment has {late[5376]:.1f} %" in page
    assert f"after 16,384 they have {early[16384]:.1f} and {late[16384]:.1f} %." in page


def test_what_is_said_of_the_remedy():
    *early, late, first = table_of(renaming)
    runs = {r["seed"]: r for r in read_records(renaming.RECORD.with_suffix(""))}
    for r in (*early, first):
        run = runs[r["seed"]]
        assert (run["steps"], run["gamma"], run["algorithm"]) == (r["steps"], r["gamma"], r["algorithm"])
        assert abs(run["last"] - r["accuracy"]) < 0.2  # bf16 there, fp32 on a CPU
    page = said_in("reproduce.md")
    assert late["exchanged"] == [["ship", "truck"], ["deer", "horse"]]
    assert late["accuracy_after"] == late["matched"]
    assert f"its {late['accuracy']:.1f} % on the test images are {late['accuracy_after']:.1f} %" in page
    assert len(early) == 4
    assert all(r["exchanged"] == [] and r["gamma"] == 100 and r["on"] == "held_out" for r in early)
    *little, more = sorted(r["matched"] - r["accuracy"] for r in early)
    assert f"would gain at most {max(little):.1f} points" in page
    assert f"it would gain {more:.1f}, of classes" in page

    assert runs[2]["renamed"] == [[24576, [["ship", "truck"]]]]
    assert first["exchanged"] == [["deer", "horse"]]
    assert first["accuracy_after"] == first["matched"]
    assert f"but not deer and horses ({runs[2]['median_10']:.1f} %)" in page
    assert f"{first['accuracy_after']:.1f} % are what this would have made of it" in page


def test_what_is_said_of_the_run_with_the_remedy():
    page, short = said_in("reproduce.md"), said_in("cadr.md")
    records = results(2**17, 1)
    run, alone = records["cifar10-gamma100-cadr-renaming"], records["cifar10-gamma100-cadr"]
    assert run["renamed"] == [[2**15, [["ship", "truck"]]], [2**16, [["cat", "dog"]]], [3 * 2**15, [["cat", "dog"]]]]
    curve = dict(run["curve"])
    assert f"goes from {curve[2**15]:.1f} to {curve[2**15 + 1024]:.1f} % within 1,024 steps" in page
    assert f"ends at {run['median_10']:.1f} % (CADR alone: {alone['median_10']:.1f} %" in page
    assert f"it makes {run['median_10']:.1f} % of CADR's {alone['median_10']:.1f} %" in short
    falls = [f"from {curve[step]:.1f} to {curve[step + 1024]:.1f} %" for step in (2**16, 3 * 2**15)]
    assert f"the accuracy falls {falls[0]}, and {falls[1]}, and is higher than before after 5,120 steps" in page
    assert all(curve[step + 5120] > curve[step] > curve[step + 1024] for step in (2**16, 3 * 2**15))
    cat, dog = (round(100 * 100 ** (-c / 9)) for c in (3, 5))  # labels of a class, by the protocol
    assert f"what surrounds {cat + dog} labelled ones adds up to noise" in page


def test_what_is_said_of_the_draw_that_misleads():
    page = said_in("reproduce.md")
    records = results(2**15, 2)
    run, anchored, without = (
        records[f"cifar10-gamma50-{row}"] for row in ("cadr-renaming", "cadr-anchoring", "cap-cai-anchoring")
    )
    assert run["renamed"] == [[2**14, [["deer", "horse"]]], [3 * 2**13, [["ship", "truck"]]]]
    curve = dict(run["curve"])
    gains = [f"from {curve[step]:.1f} to {curve[step + 256]:.1f} %" for step, _ in run["renamed"]]
    assert f"(the accuracy goes {gains[0]} within 256 steps)" in page
    assert f"ships and trucks after three quarters ({gains[1]})" in page
    said = [f"{r['median_10']:.1f} %" for r in (run, anchored, without)]
    assert f"ends at {said[0]}, where anchored labels end at {said[1]} (CADR) and {said[2]} (CAP + CAI)" in page


def test_what_is_said_of_right_names():
    records = table_of(right_names)
    page = said_in("cadr.md")
    right = sum(r["matched"] == r["accuracy"] for r in records)
    said = f"in {len(records)} short runs on tables and digits, in {right} of which matching names would gain nothing"
    assert f"{said}, it swaps none" in page
    assert not any(r["exchanged"] for r in records)
