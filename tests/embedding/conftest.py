"""Models that are made once, and a cache folder of the tests' own."""

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Nothing that another test has computed is found."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cadr"


@pytest.fixture(scope="session")
def vit(tmp_path_factory):
    from tests.embedding import tiny

    return tiny.save_vit(tmp_path_factory.mktemp("vit"))


@pytest.fixture(scope="session")
def dinov2(tmp_path_factory):
    from tests.embedding import tiny

    return tiny.save_dinov2(tmp_path_factory.mktemp("dinov2"))


@pytest.fixture(scope="session")
def resnet(tmp_path_factory):
    from tests.embedding import tiny

    return tiny.save_resnet(tmp_path_factory.mktemp("resnet"))


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    from tests.embedding import tiny

    return tiny.save_bert(tmp_path_factory.mktemp("bert"))
