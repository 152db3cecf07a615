"""Errors are sentences, whatever the names in them."""

import pickle

import pytest

from cadr.errors import CadrError, CheckpointError, ConfigError, MissingPackageError, shortened
from tests.data.loose import from_arrays, open_data

LONG = "Glandularia" * 200


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("a plain sentence; do this", "a plain sentence; do this"),
        (f"there is no class {LONG!r}; rename it", f"there is no class '{shortened(LONG, 80)}'; rename it"),
        (f"the run's folder {'x' * 300}, line 3", f"the run's folder {shortened('x' * 300 + ',', 160)} line 3"),
        (f"'a' and 'b', and {'words of the sentence ' * 9}'c'", f"'a' and 'b', and {'words of the sentence ' * 9}'c'"),
        (f"it isn't {'long, ' * 20}'d'", f"it isn't {'long, ' * 20}'d'"),
        (f'got "{"it is " * 50}"', f'got "{shortened("it is " * 50, 80)}"'),
        (r"got 'it\'s' and 'b'", r"got 'it\'s' and 'b'"),
    ],
)
def test_long_names_are_shortened_and_sentences_are_kept(message, expected):
    for kind in (CadrError, ConfigError, CheckpointError):
        assert str(kind(message)) == expected
    assert str(pickle.loads(pickle.dumps(ConfigError(message)))) == expected


def test_a_missing_package_is_an_import_error_and_ours():
    error = MissingPackageError("it needs x: pip install x")
    assert isinstance(error, ImportError)
    assert str(error) == "it needs x: pip install x"


def test_ends_that_tell_names_apart_are_kept():
    assert shortened("Quercus robur subsp. robur", 13) == "Quercu… robur"
    assert shortened("Quercus", 7) == "Quercus"
    assert len(shortened(LONG, 80)) == 80


def test_the_sentences_of_long_names_fit_on_a_few_lines(tmp_path):
    with pytest.raises(CadrError) as refused:
        from_arrays([[1.0], [2.0]], [LONG, LONG + "!"], class_names=(LONG, LONG + "?"))
    assert len(str(refused.value)) < 600
    path = tmp_path / "t.csv"
    path.write_text(f"{LONG},label\n{LONG},{LONG}\n1,b\n2,b\n")
    with pytest.raises(CadrError) as refused:
        open_data(path)
    assert len(str(refused.value)) < 600
    path.write_text(f"{LONG},{LONG},label\n1,2,a\n")
    with pytest.raises(CadrError) as refused:
        open_data(path)
    assert len(str(refused.value)) < 600
