"""What docs/reproduce.md says of rivals on CIFAR-10 is what their records hold."""

import numpy as np

from benchmarks import names
from cadr.cli.recipes import read_rows
from tests.benchmarks.test_names import results, said_in


def test_what_is_said_of_rivals():
    page, records = said_in("reproduce.md"), results(2**15, 1)
    cadr, free, soft, prg, align, darp, fixmatch = (
        records[f"cifar10-gamma50-{row}"]
        for row in ("cadr", "freematch", "softmatch", "prg", "alignment", "darp", "fixmatch")
    )
    shown = [f"{r['median_10']:.1f} %" for r in (free, soft, cadr)]
    assert "**FreeMatch ({}), SoftMatch ({}) and CADR ({}) end close together**".format(*shown) in page
    assert min(min(r["recall"]) for r in (free, soft, cadr, prg)) > 60
    curves = [dict(r["curve"]) for r in (cadr, free, soft)]
    early = [f"{curve[8192]:.1f} %" for curve in curves]
    assert "after 8,192 steps CADR is at {}, FreeMatch at {} and SoftMatch at {};".format(*early) in page
    assert max(curve[2**14] for curve in curves) - min(curve[2**14] for curve in curves) < 3
    joined, half, one = (
        records[f"cifar10-gamma50-{row}"]["median_10"] for row in ("cap-freematch-resampling", "cai", "cai-beta1.0")
    )
    assert f"CAI has {one:.1f} % with it, {half:.1f} % with 0.5," in page
    assert f"**Both joined, `cap_freematch_resampling`, have {joined:.1f} %**" in page
    assert f"it has {joined:.1f} % after 2^15 steps, CADR {shown[2]} and FreeMatch {shown[0]}." in said_in("cadr.md")
    assert f"**Uniform alignment has {align['median_10']:.1f} %**" in page
    assert f"not the ships ({align['recall'][8]:.1f} %)" in page
    assert f"most of the cats ({align['recall'][3]:.1f} %)" in page
    assert f"**DARP has {darp['median_10']:.1f} %, less than FixMatch ({fixmatch['median_10']:.1f} %)**" in page
    assert f"({dict(darp['curve'])[12288]:.1f} and {dict(fixmatch['curve'])[12288]:.1f} %), then" in page


def test_what_is_said_of_prg_and_flexmatch():
    page, records = said_in("reproduce.md"), results(2**15, 1)
    prg, last, flex = (records[f"cifar10-gamma50-{row}"] for row in ("prg", "prg-last", "flexmatch"))
    both = [f"{r['median_10']:.1f} %" for r in (prg, last)]
    assert "missing not at random, has {}, its variant PRG^Last {}**".format(*both) in page
    assert min(prg["recall"] + last["recall"] + flex["recall"]) > 60
    assert "after 8,192 steps {:.1f} and {:.1f} %.".format(*(dict(r["curve"])[8192] for r in (prg, last))) in page
    assert f"**FlexMatch has {flex['median_10']:.1f} %**" in page
    early = "{:.1f} and {:.1f} %".format(*(dict(flex["curve"])[step] for step in (5632, 8192)))
    assert f"finds all classes between 5,632 and 8,192 steps ({early})" in page


def test_what_is_said_of_the_papers_rivals():
    page, records = said_in("reproduce.md"), results(2**15, 1)
    published = {row.name: row.published for row in read_rows(names.ROOT / "recipes" / "hu2022.toml")}
    rows = [f"cifar10-gamma50-{row}" for row in ("reweighting", "logit-adjustment", "resampling", "fixmatch", "dash")]
    shown = [f"{records[row]['median_10']:.1f} %" for row in rows]
    theirs = "{:.2f}, {:.2f}, {:.2f}, {:.2f} and {:.2f} %".format(*(published[row] for row in rows))
    assert "**Re-weighting has {}, logit adjustment {}, re-sampling {}, FixMatch {}, DASH {}**".format(*shown) in page
    assert f"(published after 2^17 steps: {theirs})" in page
    adjusted = records[rows[1]]["recall"][8]
    others = [recall for row in rows for recall in records[row]["recall"][8:] if recall != adjusted]
    assert f"none finds more than {max(others):.1f} %, but for {adjusted:.1f} % of the ships" in page
    remix, crest, simpro = (records[f"cifar10-gamma50-{row}"] for row in ("remixmatch", "crest", "simpro"))
    theirs = f"(published: {published['cifar10-gamma50-remixmatch']:.2f} %)"
    assert f"**ReMixMatch has {remix['median_10']:.1f} %** {theirs}" in page
    assert f"{100 * remix['prior'][0]:.1f} % of P̂ are aeroplanes" in page
    late = [accuracy for step, accuracy in remix["curve"] if step > 2 / 3 * 2**15]
    assert f"between {min(late):.1f} and {max(late):.1f} % in the last third" in page
    theirs = f"(published: {published['cifar10-gamma50-crest']:.2f} %)"
    assert f"**CReST has {crest['median_10']:.1f} %** {theirs}" in page
    ends = [dict(crest["curve"])[step] for step in (5376, 2**14, 2**15)]
    assert f"FixMatch has {dict(records[rows[3]]['curve'])[5376]:.1f} % after 5,376." in page
    assert "first generation ends at {:.1f} %, the third at {:.1f} %, the last at {:.1f} %".format(*ends) in page
    assert not np.array(crest["confusion"])[:, 8:].any()
    plus = records["cifar10-gamma50-crest-plus"]
    assert f"to equal shares step by step, has {plus['median_10']:.1f} %.**" in page
    counts = np.array(plus["confusion"])
    assert f"finds ships ({plus['recall'][8]} %), but calls {counts[0, 8]} of 1,000 aeroplanes ships" in page
    step, adopted, right = plus["generations"][-1]
    assert max(adopted) == adopted[8]
    assert f"it adopts {adopted[8]:,} ships, more than of any other class, and {right[8]:.0f} % of them are" in page
    assert f"({plus['recall'][9]} %; {counts[9, 1]} of 1,000 are called cars and {counts[9, 8]} ships)" in page
    assert f"begins afresh every {step // 5:,} steps" in page
    assert f"**SimPro has {simpro['median_10']:.1f} %**" in page
    called = np.array(simpro["confusion"])[:, [7, 9]].sum()
    assert f"of {np.sum(simpro['confusion']):,} test images {called:,} are called horses or trucks" in page


def test_what_is_said_of_those_without_anything_against_the_bias():
    page, records = said_in("reproduce.md"), results(2**15, 1)
    none, mixed, pi = (records[f"cifar10-gamma50-{row}"] for row in ("supervised", "mixmatch", "pi-model"))
    shown = [f"{r['median_10']:.1f} %" for r in (none, mixed, pi)]
    assert "**Without unlabelled images {}, MixMatch {}, the Π-model {}**".format(*shown) in page
    assert max(mixed["recall"][5:] + pi["recall"][5:]) < 1
    assert "with {:.0f} % aeroplanes and {:.0f} % cars in P̂".format(*(100 * p for p in mixed["prior"][:2])) in page
    assert f"the Π-model with {100 * pi['prior'][0]:.0f} % aeroplanes" in page
    step, best = max(pi["curve"], key=lambda point: point[1])
    assert f"The Π-model had {best:.1f} % after {step:,} steps" in page
