"""The package's names without their types: a test may ask of a result what it pleases, and fails if it asks wrongly."""

from typing import Any

from cadr import data

PROTOCOLS: dict[str, Any] = dict(data.PROTOCOLS)
Pool: Any = data.Pool
Split: Any = data.Split
apply: Any = data.apply
from_arrays: Any = data.from_arrays
make_split: Any = data.make_split
open_data: Any = data.open_data
