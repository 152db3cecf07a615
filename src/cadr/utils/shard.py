"""One of several equal parts of the data, for machines that share the work without knowing of each other."""

from __future__ import annotations

import re
from typing import NamedTuple

from cadr.errors import ConfigError

_MOST = 100_000


class Shard(NamedTuple):
    number: int  # from 1
    of: int

    @staticmethod
    def parse(text: str) -> Shard:
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        shard = Shard(*map(int, found.groups())) if found else Shard(0, 0)
        if not 1 <= shard.number <= shard.of <= _MOST:
            raise ConfigError(f"shard: expected I/N with I from 1 to N, as 2/8, got {text!r}")
        return shard

    def part(self, whole: int) -> range:
        """Which of so many things, in order, are this shard's; the shards' sizes differ by one at most."""
        return range(whole * (self.number - 1) // self.of, whole * self.number // self.of)

    @property
    def is_first(self) -> bool:
        return self.number == 1

    @property
    def is_last(self) -> bool:
        return self.number == self.of

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
