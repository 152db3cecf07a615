"""Every source of data: benchmarks by name, and the formats of people's own."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.data.benchmarks import BENCHMARKS, open_benchmark
from cadr.data.pool import Pool
from cadr.data.raw import Pictures, embed_pool
from cadr.data.sources import csv_table, folder, hf_dataset, npy, npz, parquet, picture, text_folder
from cadr.data.sources.arrays import array_blocks
from cadr.data.sources.base import Blocks, Format, Kind, Options, PredictionDataError, Wanted
from cadr.data.sources.images import holds, resize_all
from cadr.data.sources.labels import names_of_numbers
from cadr.data.sources.many_files import TABLES, is_url, open_url, table_folder
from cadr.data.sources.more_labels import with_row_labels
from cadr.errors import DataError
from cadr.utils.files import check_kind, check_name, expand_home

if TYPE_CHECKING:
    from cadr.embedding.registry import Pretrained

SOURCES: tuple[Format, ...] = (hf_dataset, text_folder, folder, picture, npy, npz, csv_table, parquet)
_FILES = "a file that ends in .npz, .npy, .csv, .tsv or .parquet"


def open_pool(spec: str | Path, options: Options, root: str | Path | None = None) -> Pool:
    """A benchmark by its name, or data of somebody's own; `root` is where benchmarks lie."""
    path, added, size = Path(spec), None, options.image_size
    if spec in BENCHMARKS:
        pool = open_benchmark(str(spec), root)
    else:
        path, source = _found(spec, options.labels, DataError, f"a folder, or {_FILES}")
        added = None if source.LABELS_BESIDE else options.labels
        if added is not None and not added.exists():
            raise DataError(f"{spec} holds its own labels, and {added}, which should add to them, is not there")
        pool = source.open_pool(path, options)
    if options.features is not None and pool.embedded is None:
        pool = _embedded(spec, pool, options.features)
    elif size is not None and pool.kind == "image" and pool.examples.shape[1:3] != (size, size):  # in an array
        test = None if pool.test_examples is None else resize_all(pool.test_examples, size)
        pool = dataclasses.replace(pool, examples=resize_all(pool.examples, size), test_examples=test)
    return pool if added is None else with_row_labels(pool, path, added, options.label_column)


def open_blocks(spec: str, wanted: Wanted, labels: Path | None = None, root: str | Path | None = None) -> Blocks:
    """Anything that can be trained on, a single picture, a folder of tables, or a URL, to predict on."""
    if is_url(spec):
        if labels is not None:
            raise PredictionDataError(
                f"{spec}: labels beside the data are for those on this machine; leave out --labels"
            )
        return open_url(spec, wanted, lambda file: open_blocks(str(file), wanted))
    if spec in BENCHMARKS:
        pool = open_benchmark(spec, root)
        names = names_of_numbers(pool.labels, pool.class_names, wanted.class_names)
        return array_blocks(spec, pool.examples, names, wanted)
    path, source = _found(spec, None, PredictionDataError, f"a folder, a picture, or {_FILES}")
    if source is folder and wanted.kind == "features" and wanted.raw is None and holds(path, TABLES):
        return table_folder(path, lambda file: open_blocks(str(file), wanted))
    if source.KIND not in (None, wanted.kind):
        raise wanted.other_kind(f"{spec} is {source.NAME}")
    if labels is not None and not source.LABELS_BESIDE:
        own = f"{spec} holds its own labels" if source is not picture else f"{spec} is one picture"
        raise PredictionDataError(f"{own}; --labels is for a folder of images or an .npy file")
    return source.open_blocks(path, wanted, labels)


def likely_kind(path: Path) -> Kind | None:
    """What data hold, where that can be told by a look at them."""
    with suppress(OSError):  # any word may be asked about, and no file is called by a thousand digits
        known = SOURCES if path.suffix or path.is_dir() else ()
        source = next((source for source in known if source.matches(path)), None)
        return None if source is None else source.KIND or npz.kind_by_header(path)
    return None


def _found(spec: str | Path, labels: Path | None, error: type[DataError], expected: str) -> tuple[Path, Format]:
    path = hf_dataset.locate(str(spec)) if str(spec).startswith(hf_dataset.PREFIX) else expand_home(spec)
    if not path.exists() and not hf_dataset.matches(path):
        raise error(f"{spec} is neither a file or folder nor a benchmark ({', '.join(BENCHMARKS)})")
    for given in (path, labels):
        if given is not None:
            check_name(given)
            check_kind(given)
    for source in SOURCES:
        if source.matches(path):
            return path, source
    raise error(f"{spec}: expected {expected}")


def is_there(spec: str) -> bool:
    """Whether data that are no benchmark can be looked for here."""
    return spec.startswith(hf_dataset.PREFIX) or expand_home(spec).exists()


def _embedded(spec: str | Path, pool: Pool, features: Pretrained) -> Pool:
    if pool.kind != "image":
        raise DataError(f"--features is for pictures and texts, and {spec} holds numbers alone; leave it out")
    parts = [Pictures(part) for part in (pool.examples, pool.test_examples) if part is not None]
    (examples, *test), embedded = embed_pool(features, *parts)
    return dataclasses.replace(pool, examples=examples, test_examples=test[0] if test else None, embedded=embedded)
