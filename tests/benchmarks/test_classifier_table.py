"""What docs/own-embeddings.md says of CADRClassifier beside scikit-learn's methods is what the record says."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "own-embeddings.md").read_text(encoding="utf-8").replace("\n", " ")
RECORD = json.loads((ROOT / "benchmarks" / "classifier.json").read_text(encoding="utf-8"))
MEANS = {m["method"]: m["mean"] for m in RECORD["methods"]}


def test_the_figures_are_the_records():
    default, spreading, logistic, told, images = (
        f"{MEANS[name]:.1f} %"
        for name in (
            "CADR, default for features",
            "LabelSpreading, 7 neighbours",
            "supervised, logistic regression",
            "CADR, the same, told that classes are equally frequent",
            "CADR, small convolutional net",
        )
    )
    labels = RECORD["protocol"]["labels"]
    assert RECORD["seeds"] == [1, 2, 3, 4, 5]
    drawn = f"({labels}, drawn anew for each of five seeds)"
    assert f"with other labels {drawn}, a network trained with CADR reaches {default} where" in PAGE
    assert f"`LabelSpreading` reaches {spreading} and logistic regression on the labelled rows {logistic}:" in PAGE
    assert f"it reaches {told}, and as images, with a small convolutional network, {images} (" in PAGE


def test_the_convolutional_net_is_ahead_of_all_that_scikit_learn_has():
    ours = MEANS["CADR, small convolutional net"]
    assert all(ours > mean for name, mean in MEANS.items() if not name.startswith("CADR"))
