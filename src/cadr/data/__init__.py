"""Data: pools of examples where −1 means *missing*, where they come from, and who keeps a label."""

from __future__ import annotations

from pathlib import Path

from cadr.data.benchmarks import BENCHMARKS, open_benchmark
from cadr.data.pool import Pool
from cadr.data.protocols import PROTOCOLS, Protocol
from cadr.data.sources.arrays import from_arrays, open_npz
from cadr.data.split import Split, apply, make_split
from cadr.errors import DataError

__all__ = [
    "BENCHMARKS",
    "PROTOCOLS",
    "Pool",
    "Protocol",
    "Split",
    "apply",
    "from_arrays",
    "make_split",
    "open_data",
]


def open_data(
    spec: str,
    *,
    root: str | Path | None = None,
    labels: str | Path | None = None,
    label_column: str = "label",
    image_size: int | None = None,
) -> Pool:
    """Open a benchmark by name, or a user's own file or folder."""
    if spec in BENCHMARKS:
        return open_benchmark(spec, root)
    path = Path(spec)
    if not path.exists():
        raise DataError(f"{spec} is neither a file or folder nor a benchmark ({', '.join(BENCHMARKS)})")
    if path.suffix == ".npz":
        return open_npz(path)
    raise DataError(f"{spec}: expected an .npz file")
