"""Watchdogs: what goes wrong quietly is said in words, once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

_PATIENCE = 1 / 8  # of the run: how long something must last before it is a warning
_EARLY = 5 / 8  # of the run: a method that draws predictions to class shares finds classes until then
_WORTH_COMPARING = ("cap_cai", "cadr_resampling")
_SHORT = 1 / 4  # of the share that the method draws a class to


class Watch:
    """Looks at every log interval. Its memory is plain, so that a continued run neither repeats nor forgets."""

    def __init__(
        self, class_names: Sequence[str], steps: int, aimed: Sequence[float] = (), algorithm: str = "cadr"
    ) -> None:
        """`aimed` are the shares that the method draws its predictions to, if it does."""
        self.others = ", ".join(name for name in _WORTH_COMPARING if name != algorithm)
        self.class_names = class_names
        self.aimed = aimed
        self.patience = math.ceil(steps * _PATIENCE)
        self.early = math.ceil(steps * _EARLY) if aimed else 0
        # the step since when: no pseudo-label, or every one, has been used; nobody has predicted the class; far fewer
        # have than are aimed at
        self.since: dict[str, int] = {"nothing": 0, "everything": 0}
        self.unpredicted = [0] * len(class_names)
        self.short = [0] * len(class_names)
        self.warned: list[str] = []

    def facts(self) -> dict[str, Any]:
        return {"since": self.since, "unpredicted": self.unpredicted, "short": self.short, "warned": self.warned}

    def load(self, facts: dict[str, Any]) -> None:
        self.since, self.unpredicted, self.warned = facts["since"], facts["unpredicted"], facts["warned"]
        self.short = facts.get("short", self.short)  # runs begun by an earlier version have none

    def observe(self, step: int, counts: Tensor, uses_pseudo_labels: bool) -> list[str]:
        """Warnings that became due with the interval that ended at `step`; counts as in `count_pseudo_labels`."""
        messages = []
        if uses_pseudo_labels:
            used = float(counts[..., 1].sum()) / float(counts.sum())
            messages += self._lasting("nothing", used < 1e-3, step, "almost no pseudo-label has been used: the "
                "unlabelled examples play no part; a lower threshold or more labels may help")  # fmt: skip
            messages += self._lasting("everything", used > 1 - 1e-3, step, "almost every pseudo-label has been used: "
                "the threshold no longer tells sure from unsure")  # fmt: skip
        predicted = counts.sum((0, 2)).tolist()
        self.unpredicted = [step if n else since for n, since in zip(predicted, self.unpredicted, strict=True)]
        lost = [
            name
            for name, since in zip(self.class_names, self.unpredicted, strict=True)
            if self._due(step, since) and f"class {name}" not in self.warned
        ]
        if lost:
            self.warned += [f"class {name}" for name in lost]
            start = min(since for since in self.unpredicted if self._due(step, since))
            names = ", ".join(lost)
            messages.append(f"Since step {start} no unlabelled example has been predicted to be of class {names}.")
        return messages + self._short_of_aim(step, predicted)

    def _short_of_aim(self, step: int, predicted: Sequence[int]) -> list[str]:
        """CADR's supplement cancels CAP once the labels are fitted: then nothing keeps predictions at their target."""
        found, since = [], step
        for c, (name, aim) in enumerate(zip(self.class_names, self.aimed, strict=False)):
            share = predicted[c] / sum(predicted)
            if share >= _SHORT * aim:
                self.short[c] = step
            elif self._due(step, self.short[c]) and not {f"class {name}", f"short {name}"} & {*self.warned}:
                self.warned.append(f"short {name}")
                found.append(f"{name} ({100 * share:.1f} %, where {100 * aim:.1f} % are aimed at)")
                since = min(since, self.short[c])
        if not found:
            return []
        return [
            f"Since step {since} far fewer unlabelled examples than aimed at are predicted to be of class "
            f"{', '.join(found)}; compare another method ({self.others}), which may find them."
        ]

    def _due(self, step: int, since: int) -> bool:
        """Whether what has been so with a class since then is worth a warning now."""
        return step >= self.early and step - since >= self.patience

    def _lasting(self, what: str, now: bool, step: int, words: str) -> list[str]:
        if not now:
            self.since[what] = step
        if step - self.since[what] < self.patience or what in self.warned:
            return []
        self.warned.append(what)
        return [f"Since step {self.since[what]} {words}."]
