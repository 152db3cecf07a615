"""Labels that an annotation tool exports, put where answers go."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from cadr.data.pool import MISSING
from cadr.data.sources.folder import labelled_files
from cadr.data.sources.label_exports import read_annotations
from cadr.data.sources.more_labels import with_file_labels, with_row_labels
from cadr.label.answers import answers_of
from cadr.label.opened import data_as_now
from cadr.utils.files import expand_home


class TakenOver(NamedTuple):
    new: int
    known: int  # that were there already
    where: str


def take_over(run: Path, export: Path) -> TakenOver:
    """Add the labels of an export to those of the run's data; if one contradicts these, none is added."""
    config, pool = data_as_now(run)
    data, labels = expand_home(config.data), len(read_annotations(export))
    if data.is_dir():
        more = with_file_labels(pool, data, export, labelled_files(data, export, "file", config.source.label_column))
    else:
        more = with_row_labels(pool, data, export, config.source.label_column)
    new = np.flatnonzero((pool.labels == MISSING) & (more.labels != MISSING)).tolist()
    answers = answers_of(config, pool)
    if new:
        answers.give({row: more.class_names[more.labels[row]] for row in new})
    return TakenOver(len(new), labels - len(new), str(answers.labels or config.data))
