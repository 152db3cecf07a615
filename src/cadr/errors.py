"""What the package raises when its input is at fault: one sentence that says what was expected, what came, what to do.

The command line prints the sentence and exits with status 2; anything else is a defect of ours and shows a traceback.
"""

import re

_LONGEST = 80  # characters of a name in a sentence
_QUOTED = re.compile(r"""(?<!\w)(['"])((?:\\.|(?!\1).)*?)\1(?!\w)""", re.DOTALL)
_UNBROKEN = re.compile(r"\S{161,}")  # a path may be longer than a name


class CadrError(ValueError):
    """Base of every error that the input, not the program, is responsible for.

    Names in it that are longer than a line are shortened in their middle: the sentence is to be read.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(brief(str(message)))


class DataError(CadrError):
    """A file, folder or array is not what it should be."""


class ProtocolError(CadrError):
    """A labelling protocol cannot be carried out on this data."""


class ConfigError(CadrError):
    """A setting is unknown, out of range, or contradicts another."""


class CheckpointError(CadrError):
    """A checkpoint is damaged, hostile, or of another run."""


class TrainingError(CadrError):
    """Training cannot go on: the loss is no longer finite, for example."""


class MissingPackageError(CadrError, ImportError):
    """A package that only this needs is not installed."""


class CadrWarning(UserWarning):
    """A model was trained, and there is reason not to rely on it."""


def brief(sentence: str) -> str:
    """The sentence with shorter names, if they are longer than a line."""
    text = _QUOTED.sub(lambda found: f"{found[1]}{shortened(found[2], _LONGEST)}{found[1]}", sentence)
    return _UNBROKEN.sub(lambda found: shortened(found[0], 2 * _LONGEST), text)


def shortened(name: str, length: int) -> str:
    """Cut in the middle, as names that begin alike often differ at the end."""
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return name[: length - 1 - tail] + "…" + name[len(name) - tail :]


def costs_a_sentence(error: BaseException) -> bool:
    """Whether people can do something about it: their input, their files, or the memory of their machine."""
    return isinstance(error, CadrError | OSError) or is_out_of_memory(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Of the machine, of a GPU, or of a CPU as torch says it, which has no error of its own for that."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError)
        and (type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator" in str(error))
    )
