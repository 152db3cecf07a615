"""What a run says of its input survives the file system's oddities."""

import dataclasses
import json

from cadr.data.sources.columns import Column
from cadr.training.signature import FILE, InputSpec


def test_a_class_named_in_no_known_encoding_comes_back(tmp_path):
    """A folder's name need not be UTF-8; Python then holds it with lone surrogates, which no encoder takes."""
    spec = InputSpec("features", (2,), ("caf\udce9", "thé"), (3, 1), 40, ("a", "b"), (0.0, 0.0), (1.0, 1.0))
    (tmp_path / FILE).write_text(spec.to_json(), encoding="utf-8")
    assert InputSpec.read(tmp_path) == spec


def test_columns_are_read_as_written_and_may_be_absent(tmp_path):
    columns = (Column("a", fill=2.5), Column("b", words=("x", "ÿ")), Column("c"))
    names = ("a", "a missing", "b = x", "b = ÿ", "c")
    spec = InputSpec("features", (5,), ("u", "v"), (3, 1), 40, names, (0.0,) * 5, (1.0,) * 5, columns)
    (tmp_path / FILE).write_text(spec.to_json())
    assert InputSpec.read(tmp_path) == spec
    assert spec.table == columns
    plain = dataclasses.replace(spec, feature_names=tuple("abcde"), columns=None)
    old = json.loads(plain.to_json())
    del old["columns"]  # runs that were trained before tables could have words
    (tmp_path / FILE).write_text(json.dumps(old))
    assert InputSpec.read(tmp_path) == plain
    assert plain.table == tuple(map(Column, "abcde"))
