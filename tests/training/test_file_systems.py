"""File systems that lack something, as those of a network or a container may: a run goes on without it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat

import pytest

from cadr.utils.files import sync
from tests.training import tiny


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL])
def test_no_locks(tmp_path, monkeypatch, number):
    def refused(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    assert tiny.finish(tiny.config(steps=4, evaluations=1), tmp_path / "run")["kind"] == "finished"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_names_that_cannot_be_synchronised(tmp_path, monkeypatch, number):
    real = os.fsync

    def refused(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refused)
    assert tiny.finish(tiny.config(steps=4, evaluations=1), tmp_path / "run")["kind"] == "finished"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_contents_that_cannot_be_synchronised_are_an_error(tmp_path, monkeypatch, number):
    def refused(descriptor):
        raise OSError(number, os.strerror(number))

    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match=os.strerror(number)):
        sync(tmp_path / "file")
    if number == errno.EIO:
        with pytest.raises(OSError, match=os.strerror(number)):
            sync(tmp_path)
