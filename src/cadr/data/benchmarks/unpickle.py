"""CIFAR's python batches are pickles, and a pickle is a program. This reader runs only the few steps they consist of.

Two fences: the opcodes are looked through before anything is done, and the three names that the files refer to are
answered with stand-ins of our own, which can hold bytes as a uint8 array and nothing else. NumPy's constructors, or any
other function, are out of reach.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np

from cadr.errors import DataError
from cadr.utils.text import reason

_NAMED = """
    PROTO FRAME STOP MARK POP_MARK NONE NEWTRUE NEWFALSE EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND
    APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 INT BININT BININT1 BININT2 LONG LONG1 STRING BINSTRING
    SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 UNICODE BINUNICODE SHORT_BINUNICODE PUT BINPUT LONG_BINPUT MEMOIZE
    GET BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD"""
_OPCODES = frozenset(_NAMED.split())


class PickleError(DataError):
    """A pickle asks for something that the official files never do, or is damaged."""


class _Dtype:
    """Stands in for numpy.dtype('u1'), whose byte order and alignment are nothing to keep."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        pass


class _Array:
    """Stands in for an array of bytes."""

    __slots__ = ("array",)

    def __setstate__(self, state: Any) -> None:
        try:
            _, shape, dtype, fortran, raw = state
            if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes):
                raise PickleError("it has an array whose contents are not plain bytes")
            self.array = np.frombuffer(raw, dtype=np.uint8).reshape(shape, order="F" if fortran else "C")
        except (TypeError, ValueError) as error:
            raise PickleError(f"it has an array that does not fit its shape: {reason(error)}") from error


class _Name:
    """What a name in the pickle turns into: something to call, that cannot be changed."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        raise PickleError("it changes a function instead of calling it")


class _NdarrayName(_Name):
    __slots__ = ()  # only ever handed to _reconstruct


class _Reconstruct(_Name):
    __slots__ = ()

    def __call__(self, *_: Any) -> _Array:
        return _Array()


class _MakeDtype(_Name):
    __slots__ = ()

    def __call__(self, code: Any, *_: Any) -> _Dtype:
        if code not in ("u1", b"u1"):
            raise PickleError(f"it has an array of type {code!r}, where only bytes belong")
        return _Dtype()


class _Encode(_Name):
    """How Python 3 writes bytes into a pickle that Python 2 could read."""

    __slots__ = ()

    def __call__(self, text: Any, encoding: Any) -> bytes:
        if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
            raise PickleError("it has text in an encoding other than latin1")
        return text.encode("latin1")


_NAMES: dict[tuple[str, str], _Name] = {
    ("numpy.core.multiarray", "_reconstruct"): _Reconstruct(),
    ("numpy._core.multiarray", "_reconstruct"): _Reconstruct(),
    ("numpy", "ndarray"): _NdarrayName(),
    ("numpy", "dtype"): _MakeDtype(),
    ("_codecs", "encode"): _Encode(),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        asked = f"{module}.{name}"
        try:
            return _NAMES[module, name]
        except KeyError:
            raise PickleError(f"it asks for {asked!r}, which the official files never do") from None


def unpickle(where: str, data: bytes) -> dict[str, Any]:
    """The dictionary in an official batch, its keys as text and its arrays as NumPy arrays of bytes."""
    try:
        _look_through(data)
        content = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except PickleError as error:
        raise PickleError(f"{where} is refused: {error}") from error
    except Exception as error:  # a damaged pickle can fail in any way at all; none of them is ours
        raise PickleError(f"{where} is not a readable pickle: {type(error).__name__}: {reason(error)}") from error
    if not isinstance(content, dict):
        raise PickleError(f"{where} should hold a dictionary, got {type(content).__name__}")
    return {_text(key): _plain(value) for key, value in content.items()}


def _plain(value: Any) -> Any:
    return getattr(value, "array", None) if isinstance(value, _Array) else value


def _look_through(data: bytes) -> None:
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name not in _OPCODES:
            raise PickleError(f"it uses the pickle operation {opcode.name}, which the official files never do")
        if opcode.name in ("PUT", "LONG_BINPUT") and int(argument or 0) > len(data):
            raise PickleError("it refers to more objects than it can hold")


def _text(key: Any) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)
