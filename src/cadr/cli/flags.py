"""Flat command-line flags from the fields of dataclasses, and those that say what DATA is.

A default and its help live in the dataclass of the part they belong to; here they become `--n-max 50`, `--no-flip`,
`--strong randaugment`. A flag that was not given is absent from the namespace, so that a recipe's value, and only then
the dataclass's default, can take its place.
"""

from __future__ import annotations

import argparse
import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

if TYPE_CHECKING:
    from cadr.data import Pool


Parse = Callable[[str], Any]

_MOST = 1000  # seeds or processes
_WORDS: dict[type, str] = {int: "a whole number", float: "a number"}


def add_flags(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    kind: type[Any],
    shown: Mapping[str, Any] | None = None,
    skip: Iterable[str] = (),
) -> None:
    """Give `parser` one flag per field of the dataclass `kind`; `shown` has values that stand in for its defaults."""
    hints = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        if item.name not in skip:
            default = (shown or {}).get(item.name, _default(item))
            _add(parser, item.name, hints[item.name], default, item.metadata.get("help", ""))


def given(namespace: argparse.Namespace, kind: type[Any]) -> dict[str, Any]:
    """The values that the command line gave for fields of `kind`; those it did not mention are not in the dict."""
    values: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        if hasattr(namespace, item.name):
            value = getattr(namespace, item.name)
            values[item.name] = tuple(value) if isinstance(value, list) else value
    return values


def flag(name: str) -> str:
    """The flag of a field: `n_max` becomes `--n-max`."""
    return "--" + name.replace("_", "-")


def count(text: str) -> int:
    """How many of something that takes a while each."""
    if not text.isdecimal() or not 1 <= len(text) <= len(str(_MOST)) or not 1 <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {_MOST}, got {text!r}")
    return int(text)


def _default(item: dataclasses.Field[Any]) -> Any:
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    return item.default


def _add(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, name: str, hint: Any, default: Any, text: str
) -> None:
    unset = default is dataclasses.MISSING or default is None or default == ()
    described = (text if unset else f"{text} (default: {_show(default)})").strip().replace("%", "%%")
    if hint is bool:
        parser.add_argument(
            flag(name), action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=described
        )
        return
    options: dict[str, Any] = {}
    inner, optional = _without_none(hint)
    lists = [kind for kind in (inner, *get_args(inner)) if get_origin(kind) is tuple]
    if lists and lists[0] is not inner:  # numbers, or one of some words
        (words,) = (kind for kind in get_args(inner) if kind is not lists[0])
        options |= {"nargs": "+", "action": _NumbersOrWord}
        parse = _any_of([_parse(get_args(lists[0])[0]), _parse(words)])
    elif lists:
        arguments = get_args(inner)
        many = len(arguments) == 2 and arguments[1] is Ellipsis
        options["nargs"] = "+" if many else len(arguments)
        parse = _parse(arguments[0])
    else:
        parse = _or_none(_parse(inner)) if optional else _parse(inner)
    parser.add_argument(
        flag(name),
        type=parse,
        metavar=_metavar(inner, name),
        default=argparse.SUPPRESS,
        help=described,
        **options,
    )


class _NumbersOrWord(argparse.Action):
    """Several numbers are a list, a word stands alone."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, values[0] if len(values) == 1 and isinstance(values[0], str) else values)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, UnionType):
        rest = tuple(a for a in get_args(hint) if a is not NoneType)
        if len(rest) < len(get_args(hint)):
            return (rest[0] if len(rest) == 1 else Union[rest]), True  # noqa: UP007
    return hint, False


def _parse(hint: Any) -> Parse:
    """What turns the text of a flag into a value of the field's type."""
    if get_origin(hint) is Literal:
        return _one_of(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return _any_of([_parse(a) for a in sorted(get_args(hint), key=_looseness)])
    if hint in (int, float):
        return _number(hint)
    return str


def _looseness(hint: Any) -> int:
    """Numbers are tried before words, or "0.5" would stay text."""
    return [int, float].index(hint) if hint in (int, float) else 3 if hint is str else 2


def _number(kind: type) -> Parse:
    def parse(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected {_WORDS[kind]}, got {text!r}") from None

    return parse


def _one_of(choices: Sequence[Any]) -> Parse:
    def parse(text: str) -> Any:
        for choice in choices:
            if text == str(choice):
                return choice
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(map(str, choices))}, got {text!r}")

    return parse


def _any_of(parses: Sequence[Parse]) -> Parse:
    def parse(text: str) -> Any:
        problems = []
        for attempt in parses:
            try:
                return attempt(text)
            except argparse.ArgumentTypeError as error:
                problems.append(str(error).removeprefix("expected ").removesuffix(f", got {text!r}"))
        raise argparse.ArgumentTypeError(f"expected {' or '.join(problems)}, got {text!r}")

    return parse


def _or_none(parse: Parse) -> Parse:
    return lambda text: None if text.lower() == "none" else parse(text)


def _metavar(hint: Any, name: str) -> str:
    if get_origin(hint) is Literal:
        return "{" + ",".join(map(str, get_args(hint))) + "}"
    if get_origin(hint) is tuple:
        return _metavar(get_args(hint)[0], name)
    return "N" if hint is int else "X" if hint is float else name.upper().replace("_", "-")


def _show(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " ".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", metavar="DATA", help="a folder of images or texts, an .npz, .npy, CSV or Parquet file, or a benchmark"
    )
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="CSV of file,label for a folder, of row,label for a table or arrays; what Label Studio or CVAT export",
    )
    parser.add_argument("--label-column", default="label", metavar="NAME", help="column of labels (default: label)")
    parser.add_argument(
        "--ignore-columns",
        nargs="+",
        default=[],
        metavar="NAME",
        help="columns of a table that are no features: identifiers, dates, notes",
    )
    parser.add_argument(
        "--weight-column", metavar="NAME", help="column of a table that says for how many rows each one counts"
    )
    parser.add_argument("--image-size", type=int, metavar="N", help="resize images to N × N pixels")
    parser.add_argument(
        "--features",
        metavar="NAME",
        help="pretrained model for pictures or texts: its Hugging Face name, its folder, or an .onnx file",
    )
    parser.add_argument(
        "--text-column", metavar="NAME", help="column of a table that is a text, whatever it looks like"
    )
    add_root(parser)


def add_engine(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--engine",
        choices=["ray"],
        help=f"{what} in the Ray cluster at $RAY_ADDRESS, else in one on this machine (extra: cadr[ray])",
    )
    parser.add_argument(
        "--gpus",
        type=_share_of_gpus,
        metavar="X",
        help="with --engine: GPUs, or which fraction of one, for each worker (default: none)",
    )


def engine_gpus(namespace: argparse.Namespace) -> float | None:
    """GPUs for each of the engine's workers; None where there is no engine."""
    from cadr.errors import ConfigError

    if namespace.engine is None and namespace.gpus is not None:
        raise ConfigError("--gpus belongs to --engine ray; --device says where one process computes")
    return None if namespace.engine is None else namespace.gpus or 0.0


def _share_of_gpus(text: str) -> float:
    value = _number(float)(text)
    if not 0.0 <= value <= 64.0 or (value > 1.0 and value % 1.0):
        raise argparse.ArgumentTypeError(f"expected a fraction of a GPU, or a whole number of them, got {text!r}")
    return float(value)


def add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", metavar="FOLDER", help="where benchmarks lie (default: $CADR_DATA, else data/)")


def open_source(namespace: argparse.Namespace) -> Pool:
    from cadr.data import open_data

    return open_data(
        namespace.data,
        root=namespace.root,
        labels=namespace.labels,
        label_column=namespace.label_column,
        image_size=namespace.image_size,
        ignore_columns=tuple(namespace.ignore_columns),
        weight_column=namespace.weight_column,
        features=namespace.features,
        text_column=namespace.text_column,
        device=getattr(namespace, "device", "auto"),
    )
