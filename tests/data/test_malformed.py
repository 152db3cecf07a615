"""Whatever is wrong with the input, the answer is a named error in one sentence, and nothing runs or is written."""

import re

import pytest

from cadr.errors import CadrError
from tests.data.malformed import CASES


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def test_there_are_many():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_malformed(name, tmp_path, monkeypatch):
    if name.startswith("parquet"):
        pytest.importorskip("pyarrow")
    folder = tmp_path / "input"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    opener = CASES[name].build(folder)
    before = files(tmp_path)
    with pytest.raises(CadrError) as caught:
        opener()
    assert type(caught.value).__name__ == CASES[name].error
    message = str(caught.value)
    for words in CASES[name].words:
        assert re.search("|".join(re.escape(w) for w in words.split("|")), message), message
    assert "\n" not in message.strip()
    assert files(tmp_path) == before  # in particular, no canary
