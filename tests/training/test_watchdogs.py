"""Watchdogs bark once, in words, and only when there is reason."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from torch import Tensor, nn

from cadr.algorithms import CADR, FixMatch
from cadr.metrics import count_pseudo_labels
from cadr.training import train
from cadr.training.watchdogs import Watch
from tests.training import tiny


def counts(pseudo: list[int], used: float) -> Tensor:
    labels = torch.tensor(pseudo).repeat(1000)
    mask = torch.arange(len(labels)) < used * len(labels)
    return count_pseudo_labels(torch.full_like(labels, -1), labels, mask, 3)


def observe(watch: Watch, steps: range, pseudo: list[int], used: float, uses: bool = True) -> list[tuple[int, str]]:
    return [(step, message) for step in steps for message in watch.observe(step, counts(pseudo, used), uses)]


def watch() -> Watch:
    return Watch(("ant", "bee", "cat"), steps=800)  # patience: 100 steps


def test_a_healthy_run_is_quiet():
    assert observe(watch(), range(10, 801, 10), [0, 1, 2], 0.5) == []


def test_a_mask_that_lets_nothing_through_is_warned_about_once():
    dog = watch()
    assert observe(dog, range(10, 301, 10), [0, 1, 2], 0.5) == []
    ((step, message),) = observe(dog, range(310, 801, 10), [0, 1, 2], 0.0)
    assert step == 400
    assert message.startswith("Since step 300 almost no pseudo-label has been used")


def test_a_mask_that_lets_everything_through_is_warned_about_once():
    ((step, message),) = observe(watch(), range(10, 801, 10), [0, 1, 2], 1.0)
    assert step == 100
    assert "almost every pseudo-label" in message


@pytest.mark.parametrize(("used", "said"), [(1 / 3000, True), (2999 / 3000, True), (0.01, False), (0.99, False)])
def test_a_few_exceptions_make_no_difference(used, said):
    assert len(observe(watch(), range(10, 801, 10), [0, 1, 2], used)) == said


def test_an_algorithm_without_pseudo_labels_has_no_mask_to_collapse():
    assert observe(watch(), range(10, 801, 10), [0, 1, 2], 0.0, uses=False) == []


def test_a_class_that_nobody_predicts_any_more_is_named_once():
    dog = watch()
    observe(dog, range(10, 201, 10), [0, 1, 2], 0.5)
    ((step, message),) = observe(dog, range(210, 801, 10), [0, 0, 2], 0.5)
    assert step == 300
    assert message == "Since step 200 no unlabelled example has been predicted to be of class bee."


def aiming(*shares: float) -> Watch:
    return Watch(("ant", "bee", "cat"), steps=800, aimed=shares)


def test_a_method_with_a_target_has_five_eighths_of_the_run_to_find_a_class():
    for early in ([0, 0, 2], [1] + [0] * 6 + [2] * 3):
        late, never = aiming(0.2, 0.5, 0.3), aiming(0.2, 0.5, 0.3)
        assert observe(late, range(10, 491, 10), early, 0.5) == []
        assert observe(late, range(500, 801, 10), [0, 1, 2], 0.5) == []
        assert [step for step, _ in observe(never, range(10, 801, 10), early, 0.5)] == [500]


def test_a_class_that_falls_far_short_of_its_target_is_named_once():
    dog, bees = aiming(0.2, 0.5, 0.3), [1] + [0] * 6 + [2] * 3
    assert observe(dog, range(10, 601, 10), [0, 1, 2], 0.5) == []
    ((step, message),) = observe(dog, range(610, 801, 10), bees, 0.5)
    assert step == 700
    assert message == (
        "Since step 600 far fewer unlabelled examples than aimed at are predicted to be of class bee "
        "(10.0 %, where 50.0 % are aimed at); compare another method (cap_cai, cadr_resampling), which may find them."
    )


def test_a_method_is_not_told_to_compare_itself():
    dog = Watch(("ant", "bee", "cat"), steps=800, aimed=(0.2, 0.5, 0.3), algorithm="cap_cai")
    ((_, message),) = observe(dog, range(10, 801, 10), [1] + [0] * 6 + [2] * 3, 0.5)
    assert "compare another method (cadr_resampling), which" in message


def test_what_lies_above_a_quarter_of_its_target_or_has_none_is_no_reason():
    assert observe(aiming(0.2, 0.39, 0.41), range(10, 801, 10), [1] + [0] * 6 + [2] * 3, 0.5) == []
    assert observe(watch(), range(10, 801, 10), [1] + [0] * 98 + [2], 0.5) == []


def test_a_class_that_nobody_predicts_is_not_named_twice():
    ((_, message),) = observe(aiming(0.2, 0.5, 0.3), range(10, 801, 10), [0, 0, 2], 0.5)
    assert message == "Since step 0 no unlabelled example has been predicted to be of class bee."


def test_falling_short_survives_a_checkpoint_and_one_of_an_earlier_version():
    rare = [1] + [0] * 6 + [2] * 3
    first, second, third = (aiming(0.2, 0.5, 0.3) for _ in range(3))
    observe(first, range(10, 451, 10), [0, 1, 2], 0.5)
    facts = first.facts()
    second.load(copy.deepcopy(facts))
    assert [step for step, _ in observe(second, range(460, 801, 10), rare, 0.5)] == [550]
    third.load({name: value for name, value in facts.items() if name != "short"})
    assert len(observe(third, range(460, 801, 10), rare, 0.5)) == 1


def test_memory_survives_a_checkpoint():
    first, second = watch(), watch()
    assert len(observe(first, range(10, 151, 10), [0, 1, 1], 0.5)) == 1
    second.load(first.facts())
    assert observe(second, range(160, 801, 10), [0, 1, 1], 0.5) == []  # cat has been named already


def silent() -> nn.Linear:
    model = nn.Linear(4, 3)
    nn.init.constant_(model.weight, 0.1)
    nn.init.constant_(model.bias, 0.0)
    with torch.no_grad():
        model.bias[2] = -1e4  # nobody will ever say cat
    return model


def test_warnings_are_records(tmp_path):
    settings = tiny.config(steps=40)
    records = list(train(settings, tmp_path, pool=tiny.pool(), model=silent()))
    messages = [record["message"] for record in records if record["kind"] == "warning"]
    assert [m for m in messages if m.endswith("of class cat.")] == [messages[-1]]
    assert messages[-1] in [record.get("message") for record in tiny.metrics(tmp_path)]


def test_a_continued_run_warns_as_if_it_had_not_been_stopped(tmp_path):
    settings = tiny.config(steps=40)
    tiny.finish(settings, tmp_path / "whole", model=silent())
    records = train(settings, tmp_path / "stopped", pool=tiny.pool(), model=silent())
    while "class cat" not in next(records).get("message", ""):
        pass
    records.close()
    tiny.finish(settings, tmp_path / "stopped", model=silent())
    assert tiny.metrics(tmp_path / "stopped") == tiny.metrics(tmp_path / "whole")


@pytest.mark.parametrize(("algorithm", "warned"), [(CADR(target_prior=(0.01, 0.01, 0.98)), True), (FixMatch(), False)])
def test_a_run_is_watched_for_the_shares_that_its_method_aims_at(tmp_path, algorithm, warned):
    settings = dataclasses.replace(tiny.config(steps=40), algorithm=algorithm)
    messages = [
        r["message"] for r in train(settings, tmp_path, pool=tiny.pool(), model=Rarely()) if r["kind"] == "warning"
    ]
    assert any("98.0 % are aimed at" in m and "of class cat" in m for m in messages) == warned


class Rarely(nn.Module):
    """A network that says cat to one row in eight, whatever it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        rows = torch.arange(len(x))
        logits = torch.stack([rows % 2 * 4.0, (rows + 1) % 2 * 4.0, (rows % 8 == 0) * 9.0], dim=1)
        return logits + 0.0 * self.scale
