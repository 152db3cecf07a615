"""Settings of a run that cannot be read: the sentence says which file it is about."""

import pytest

from cadr.errors import ConfigError
from cadr.training.run_folder import RunFolder

DAMAGE = {
    "no TOML": b'data = "trees.csv',
    "a setting that there is not": b'data = "trees.csv"\nalgorithm = "cadr"\nsteeps = 3\n',
    "a value that cannot be": b'data = "trees.csv"\nalgorithm = "cadr"\nsteps = 0\n',
    "nothing": b"",
    "no UTF-8": b'data = "m\xe4use.csv"',
}


@pytest.mark.parametrize("name", DAMAGE)
def test_the_file_is_named_once(name, tmp_path):
    path = tmp_path / "config.toml"
    path.write_bytes(DAMAGE[name])
    with pytest.raises(ConfigError) as refused:
        RunFolder(tmp_path).config()
    assert str(refused.value).count(str(path)) == 1
