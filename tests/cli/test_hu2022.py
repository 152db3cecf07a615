"""The paper's recipe against the paper itself."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from cadr.cli.recipes import available, read_rows
from cadr.config import Config

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "paper.tex"
ROWS = {row.name: row for row in read_rows(ROOT / "recipes" / "hu2022.toml")}

needs_paper = pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not beside this repository")

COLUMNS = [
    *("cifar10-gamma20", "cifar10-gamma50", "cifar10-gamma100"),
    *("cifar100-gamma50", "cifar100-gamma100", "cifar100-gamma200"),
    *("stl10-gamma50", "stl10-gamma100", "mini-imagenet-gamma50", "mini-imagenet-gamma100"),
]
MCAR = [
    *("cifar10-mcar40", "cifar10-mcar250", "cifar10-mcar4000"),
    *("cifar100-mcar400", "cifar100-mcar2500", "cifar100-mcar10000", "stl10-mcar1000"),
]
TABLE_1 = {
    r"$\Pi$ Model": "pi-model",
    "MixMatch": "mixmatch",
    "ReMixMatch": "remixmatch",
    "FixMatch": "fixmatch",
    "+ CREST": "crest",
    "+ DARP": "darp",
    "+ CADR (Ours)": "cadr",
}
TABLE_2 = {"FixMatch": "fixmatch", "w/ CAP": "cap", "w/ CAI": "cai", "w/o CADR": "cap-cai", "w/ CADR": "cadr"}
TABLE_3 = {
    **{"FixMatch": "fixmatch", "+ CREST": "crest", "+ DARP": "darp", "+ re-weighting": "reweighting"},
    **{"+ re-sampling": "resampling", "+ LA loss ($\\tau$=1)": "logit-adjustment", "+ DASH": "dash"},
    **{"+ CAP (Ours)": "cap", "+ CAI (Ours)": "cai", "+ CADR (Ours)": "cadr"},
}


def printed(label: str) -> dict[str, list[tuple[float, float | None] | None]]:
    """Method -> the numbers of its line in the table with this \\label; None for a dash."""
    text = PAPER.read_text(encoding="utf-8")
    end = text.index(f"\\label{{{label}}}")
    lines = text[text.rindex("\\begin{tabular}", 0, end) : end].split("\\\\")
    table = {}
    for line in lines:
        first, _, rest = re.sub(r"\\(hline|midrule|toprule|bottomrule)", "", line).partition("&")
        name = " ".join(first.replace("\\ ", " ").split())
        # A rise or fall against FixMatch stands in parentheses behind the number; colours are six hexadecimal digits.
        rest = re.sub(r"\([+-][\d.]+\)|\[HTML\]\{\w+\}", "", rest)
        found = re.findall(r"(--)|(\d+\.\d\d)(?:\s*\\tiny\{±(\d+\.\d\d)\})?", rest)
        if found:
            table[name] = [None if dash else (float(n), float(sd) if sd else None) for dash, n, sd in found]
    return table


def cells(table: str) -> dict[str, float | None]:
    return {name: row.published for name, row in ROWS.items() if table in row.tables}


@needs_paper
@pytest.mark.parametrize(
    ("label", "table", "methods", "settings"),
    [
        ("tab:sota", "1", TABLE_1, COLUMNS),
        ("tab:seperate", "2", TABLE_2, COLUMNS),
        ("tab:baseline", "3", TABLE_3, ["cifar10-gamma50"]),
        ("tb:MAR", "4", {"FixMatch": "fixmatch", "CADR (Ours)": "cadr"}, MCAR),
    ],
)
def test_every_cell_of_a_table_is_a_row_with_its_number(label, table, methods, settings):
    lines = printed(label)
    assert set(lines) == set(methods)
    expected = {}
    for method, numbers in lines.items():
        assert len(numbers) == len(settings), method
        for setting, number in zip(settings, numbers, strict=True):
            if number is not None:
                row = ROWS[f"{setting}-{methods[method]}"]
                expected[row.name] = number[0]
                assert (row.setting, row.published_sd) == (setting, number[1])
    assert cells(table) == expected


@needs_paper
@pytest.mark.parametrize(
    ("label", "table", "names"),
    [
        ("tab:ab_CAP", "mu", ["cap-mu0.999", "cap", "cap-mu0.9", "cap-mu0"]),
        ("tab:ab_CAI", "beta", ["cai-beta0.2", "cai", "cai-beta1.0", "cai-beta-label"]),
    ],
)
def test_the_ablations(label, table, names):
    text = PAPER.read_text(encoding="utf-8")
    end = text.index(f"\\label{{{label}}}")
    body = text[text.rindex("Accuracy", 0, end) : end].partition("\\\\")[0]
    numbers = [float(n) for n in re.findall(r"\d+\.\d\d", body)]
    assert cells(table) == {f"cifar10-gamma50-{name}": n for name, n in zip(names, numbers, strict=True)}


@needs_paper
def test_the_ablated_values_are_the_headers():
    text = PAPER.read_text(encoding="utf-8")
    mu = [ROWS[f"cifar10-gamma50-{name}"].values["momentum"] for name in ("cap-mu0.999", "cap", "cap-mu0.9", "cap-mu0")]
    header = re.search(r"\$\\mu\$([^\\]*)\\\\", text)
    assert header is not None
    assert [float(x) for x in re.findall(r"[\d.]+", header[1])] == mu
    beta = [ROWS[f"cifar10-gamma50-{name}"].values["beta"] for name in ("cai-beta0.2", "cai", "cai-beta1.0")]
    header = re.search(r"\$\\beta\$ &([^{]*)", text)
    assert header is not None
    assert [float(x) for x in re.findall(r"[\d.]+", header[1])] == beta
    assert ROWS["cifar10-gamma50-cai-beta-label"].values["threshold_prior"] == "label"


def test_no_moving_average():
    """The paper's μ = 0 "denotes no moving average": the batch's own marginal, and not that of the batch before."""
    row = ROWS["cifar10-gamma50-cap-mu0"].values
    assert (row["momentum"], row["form"]) == (0, "batch")


def test_every_available_row_is_a_valid_run():
    runnable = [row for row in ROWS.values() if available(row)]
    assert len(runnable) > len(ROWS) / 2
    for row in runnable:
        config = Config.from_dict(row.values)
        assert config.to_dict().items() >= row.values.items()


def test_settings_follow_the_paper():
    models = {"cifar10": "wrn-28-2", "cifar100": "wrn-28-8", "stl10": "wrn-37-2", "mini_imagenet": "resnet-18"}
    for row in ROWS.values():
        values = row.values
        assert values["model"] == models[values["data"]]
        assert values["steps"] == (2**20 if values["protocol"] == "mcar" else 2**17)
        assert row.name == f"{row.setting}-{row.name.removeprefix(row.setting + '-')}"
        if values["protocol"] == "longtail":
            assert values["n_max"] == values["gamma"]  # one label in the last class
        ours = values["algorithm"] in ("cap", "cai", "cap_cai", "cadr")
        expected = (1.5e-3 if ours else 1e-3) if values["data"] == "cifar100" else 5e-4
        assert values["weight_decay"] == expected, row.name


@pytest.mark.parametrize("ratio", ["100", "20", "inverse20", "inverse100"])
def test_a_target_prior_is_the_make_up_of_its_unlabelled_data(ratio):
    row = ROWS[f"cifar10-unlabelled-{ratio}-cadr-target"]
    gamma = row.values["gamma_unlabelled"]
    assert math.isclose(gamma if gamma >= 1 else 1 / gamma, float(ratio.removeprefix("inverse")))
    labels = np.repeat(np.arange(10), 5000)
    selection = Config.from_dict(row.values).protocol.select(labels, 10, seed=1)
    assert selection.unlabelled is not None
    assert np.bincount(labels[selection.unlabelled]).tolist() == row.values["target_prior"]


def test_figure_4_has_rows_without_published_numbers():
    for table, least in (("4a", 8), ("4b", 2)):
        assert len(cells(table)) >= least
        assert set(cells(table).values()) == {None}
