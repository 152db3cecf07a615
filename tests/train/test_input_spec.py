"""What a run says of its input survives the file system's oddities."""

from cadr.train.input_spec import FILE, InputSpec


def test_a_class_named_in_no_known_encoding_comes_back(tmp_path):
    """A folder's name need not be UTF-8; Python then holds it with lone surrogates, which no encoder takes."""
    spec = InputSpec("features", (2,), ("caf\udce9", "thé"), (3, 1), 40, ("a", "b"), (0.0, 0.0), (1.0, 1.0))
    (tmp_path / FILE).write_text(spec.to_json(), encoding="utf-8")
    assert InputSpec.read(tmp_path) == spec
