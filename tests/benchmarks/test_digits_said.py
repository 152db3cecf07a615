"""What docs/cadr.md says of the methods on digits is what their record holds."""

import json
from statistics import fmean, stdev

from benchmarks import rivals
from tests.benchmarks.test_names import results, said_in

CELLS = json.loads(rivals.OUT.read_text(encoding="utf-8"))["cells"]


def accuracies(label):
    """Of each way of losing labels, one a seed."""
    return [cell[label]["accuracy"] for cell in CELLS.values()]


def test_a_larger_beta():
    gains = [fmean(one) - fmean(half) for one, half in zip(*map(accuracies, ("+ CADR, β = 1", "+ CADR")), strict=True)]
    assert len(gains) == 6
    assert min(gains) > 0
    page = said_in("cadr.md")
    assert f"in all six ways of losing labels, {fmean(gains):.1f} points on average" in page
    half, one = (results(2**15, 1)[f"cifar10-gamma50-{row}"]["median_10"] for row in ("cai", "cai-beta1.0"))
    assert f"CAI gains {one - half:.1f} after 2^15 steps on CIFAR-10" in page


def test_cap_on_top_of_freematch():
    page, shown = said_in("cadr.md"), {}
    for name in ("+ CADR", "+ CADR, re-sampled", "+ CAP + FreeMatch, re-sampled", "FreeMatch"):
        values = CELLS["γ = 50"][name]["accuracy"]
        shown[name] = f"{fmean(values):.1f} ± {stdev(values):.1f} %"
    cadr, resampled, ours, free = shown.values()
    assert f"at γ = 50 it has {ours}, CADR {cadr}, FreeMatch {free}." in page
    assert f"(`cadr_resampling`) has {resampled} there" in page
    for one, other in zip(*map(accuracies, ("+ CAP + FreeMatch, re-sampled", "+ CADR")), strict=True):
        assert fmean(one) > fmean(other)
