"""Which of a run's accuracies is quoted."""

from cadr.training.result import quoted, quoted_of, summary


def evaluation(step, accuracy):
    return {"step": step, "accuracy": accuracy, "on": "validation", "gm": accuracy, "recall": [accuracy, accuracy]}


def test_one_evaluation_is_quoted_of_ones_own_data_and_the_median_of_ten_of_a_benchmark():
    """The last evaluation, after nine that were half right, is perfect; so is the geometric mean beside it."""
    scores = summary([evaluation(step, 50.0 if step < 10 else 100.0) for step in range(1, 11)])
    assert scores["gm"] == 100.0
    assert quoted(scores, is_benchmark=False) == 100.0
    assert quoted(scores, is_benchmark=True) == 50.0
    assert quoted_of(scores | {"split_sha256": None}) == 100.0
    assert quoted_of(scores | {"split_sha256": "0123"}) == 50.0
    assert quoted(summary([]), is_benchmark=False) is None
