"""What a run's model takes and gives, so that it can predict without the data it was trained on: input.json."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadr.data.pool import Pool
from cadr.data.sources.columns import Column
from cadr.errors import CheckpointError
from cadr.training.feed import Inputs
from cadr.utils.options import build
from cadr.utils.untrusted import parse_json, read_text

FILE = "input.json"
_MOST = 2**53  # rows, which floating point still tells apart


@dataclass(frozen=True)
class InputSpec:
    kind: str  # image or features
    shape: tuple[int, ...]  # of an example: (h, w, 3) or (d,)
    class_names: tuple[str, ...]
    labels: tuple[int, ...]  # that there were of each class, those held out included
    rows: int  # labelled or not
    feature_names: tuple[str, ...] | None = None
    centre: tuple[float, ...] | None = None  # features are standardised: (x − centre) / scale
    scale: tuple[float, ...] | None = None
    columns: tuple[Column, ...] | None = None  # how a table with words, dates or gaps became features
    pretrained: str | None = None  # a hash of the model by which pictures or texts became features
    raw: str | None = None  # what they were: pictures or texts; None: columns of texts, if anything

    @staticmethod
    def of(pool: Pool, inputs: Inputs, validated: bool) -> InputSpec:
        held = [0] * pool.num_classes
        if validated and inputs.test_labels is not None:
            held = inputs.test_labels.bincount(minlength=pool.num_classes).tolist()
        return InputSpec(
            kind=pool.kind,
            shape=tuple(pool.examples.shape[1:]),
            class_names=pool.class_names,
            labels=tuple(int(n) + h for n, h in zip(pool.counts, held, strict=True)),
            rows=len(pool.labels),
            feature_names=pool.feature_names,
            centre=None if inputs.centre is None else tuple(inputs.centre.tolist()),
            scale=None if inputs.scale is None else tuple(inputs.scale.tolist()),
            columns=pool.columns,
            pretrained=None if pool.embedded is None else pool.embedded.model,
            raw=None if pool.embedded is None or pool.embedded.in_columns else pool.embedded.raw.modality,
        )

    @property
    def model_shape(self) -> tuple[int, ...]:
        """As the model sees an example: channels first."""
        return (self.shape[-1], *self.shape[:-1]) if self.kind == "image" else self.shape

    @property
    def table(self) -> tuple[Column, ...] | None:
        """The columns that a table to predict on needs; None: the data had no columns with names."""
        plain = None if self.feature_names is None else tuple(map(Column, self.feature_names))
        return plain if self.columns is None else self.columns

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1) + "\n"

    @staticmethod
    def read(out: Path) -> InputSpec:
        path = out / FILE
        try:
            content: Any = parse_json(read_text(path))
            spec: InputSpec = build(InputSpec, dict(content))
        except FileNotFoundError:
            raise CheckpointError(f"{out} holds no trained run: there is no {FILE} in it; train one first.") from None
        except (OSError, ValueError, TypeError) as error:
            raise CheckpointError(f"{path} cannot be used ({error}); train the run again.") from None
        features = spec.kind == "features"
        counted = 0 < spec.rows <= _MOST and all(0 <= count <= _MOST for count in spec.labels) and sum(spec.labels) > 0
        whole = counted and len(spec.shape) == (1 if features else 3) and len(spec.labels) == len(spec.class_names) >= 2
        if features:
            whole = whole and all(v is not None and len(v) == spec.shape[0] for v in (spec.centre, spec.scale))
            made = spec.table and sum(len(column.features) for column in spec.table)
            whole = whole and made in (None, spec.shape[0])
        if not whole or spec.kind not in ("image", "features") or spec.raw not in (None, "pictures", "texts"):
            raise CheckpointError(f"{path} contradicts itself; train the run again.")
        return spec
