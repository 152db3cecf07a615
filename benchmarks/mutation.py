"""How many planted bugs the tests of the pure rooms catch: `python benchmarks/mutation.py --sample 300`.

Every place in functional, estimate, algorithms and metrics where an operator, a comparison, a number, a reduction or a
detach could be another one is a mutant; a seeded sample of them is tried, each in a process of its own, against the
tests of its room that take seconds, those that name its module first. A mutant that no test fails on has survived. The
record lists the survivors by file and line, so that everybody can judge whether a test is missing or nothing has
changed. It is written after every mutant, which are tried in random order: a run that is stopped is a smaller sample.

mutmut and cosmic-ray start an interpreter for every mutant, which imports torch for longer than most tests run, and
mutmut puts every function behind another one, which torch does not capture. Here a mutant is a fork of a process that
has torch already.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "src" / "cadr", ROOT / "tests"
ROOMS = ("functional.py", "metrics.py", "estimate", "algorithms")
SECONDS = 300  # of a processor, for one mutant; one that hangs is caught by whoever waits
RECORD = Path(__file__).with_suffix(".json")

_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_NAMES = {
    **{"sum": "mean", "mean": "sum", "amax": "amin", "amin": "amax", "argmax": "argmin", "max": "min", "min": "max"},
    **{"log": "exp", "exp": "log", "softmax": "log_softmax", "log_softmax": "softmax", "zeros": "ones"},
    **{"zeros_like": "ones_like", "ones_like": "zeros_like", "clamp": None, "detach": None, "abs": None, "sqrt": None},
}
_LONG = ("test_learning.py", "test_class_shares.py", "test_label_noise.py", "test_capture.py", "test_shapes.py")
_QUIET = {"option", "Literal", "ClassVar", "TypeVar"}  # calls and subscripts with nothing in them that computes


def sources() -> list[Path]:
    files = [SOURCE / room for room in ROOMS]
    return [path for file in files for path in ([file] if file.suffix else sorted(file.glob("*.py")))]


def mutants(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Any]]:
    """Places that can be changed, as a node, what is changed in it, and into what."""
    for node in _computing(tree):
        match node:
            case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in _OPERATORS:
                yield node, "op", _OPERATORS[type(op)]()
            case ast.Compare(ops=[op]) if type(op) in _OPERATORS:
                yield node, "ops", [_OPERATORS[type(op)]()]
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                yield node, "itself", node.operand
            case ast.Constant(value=bool(value)):
                yield node, "value", not value
            case ast.Constant(value=int(value) | float(value)):
                yield node, "value", value + 1
            case ast.Call(func=ast.Attribute(attr=name) as called) if name in _NAMES:
                other = _NAMES[name]
                own = not (isinstance(called.value, ast.Name) and called.value.id in ("torch", "F", "np", "math"))
                if other is not None:
                    yield called, "attr", other
                elif own:  # x.detach() becomes x
                    yield node, "itself", called.value
            case ast.IfExp():
                yield node, "itself", node.body
                yield node, "itself", node.orelse
            case ast.FunctionDef(decorator_list=[*decorators]) if any("no_grad" in ast.dump(d) for d in decorators):
                yield node, "decorator_list", []


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """Its nodes, without annotations, errors' texts, help texts and subscripts of types."""
    yield node
    for name, child in ast.iter_fields(node):
        if name in ("annotation", "returns", "keywords") and not isinstance(node, ast.Call):
            continue
        for part in child if isinstance(child, list) else [child]:
            if not isinstance(part, ast.AST) or isinstance(part, (ast.Raise, ast.JoinedStr)):
                continue
            called = part.func if isinstance(part, ast.Call) else getattr(part, "value", None)
            if isinstance(called, ast.Name) and called.id in _QUIET:
                continue
            yield from _computing(part)


def mutated(text: str, number: int) -> tuple[str, int, str]:
    """The source with its mutant of this number, the line of it, and what has changed, in words."""
    tree = ast.parse(text)
    node, field, value = list(mutants(tree))[number]
    before = ast.unparse(node)
    if field == "itself":
        tree = _Replace(node, value).visit(tree)
        after = ast.unparse(value)
    else:
        changed = copy.copy(node)
        setattr(changed, field, value)
        after = ast.unparse(changed)
        setattr(node, field, value)
    line = getattr(node, "lineno", 0)
    short = (before.splitlines()[-1 if field == "decorator_list" else 0], after.splitlines()[0])
    return ast.unparse(ast.fix_missing_locations(tree)), line, " → ".join(part.strip()[:70] for part in short)


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, value: ast.AST) -> None:
        self.node, self.value = node, value

    def visit(self, node: ast.AST) -> Any:
        return self.value if node is self.node else self.generic_visit(node)


class _Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module another source."""

    def __init__(self, module: str, path: Path, text: str) -> None:
        self.module, self.path, self.text = module, path, text

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.module:
            return None
        package = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(name, self.path, loader=self, submodule_search_locations=package)
        return spec

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.text, str(self.path), "exec"), module.__dict__)


def tests_of(path: Path) -> list[str]:
    """The test files of its room and of the functional core, those that mention the module first.

    Without those that train for long: a mutant that they alone would catch counts as a survivor.
    """
    stem = path.stem
    rooms = {"functional.py": ["functional"], "metrics.py": ["test_metrics.py", "training/test_step.py"]}
    folders = rooms.get(path.name, [path.parent.name, "functional"])
    files = [f for folder in dict.fromkeys(folders) for f in _test_files(TESTS / folder) if f.name not in _LONG]
    words = {file: file.read_text(encoding="utf-8") for file in files}

    def rank(file: Path) -> tuple[bool, bool, int]:
        return file.stem != f"test_{stem}", stem not in words[file], files.index(file)

    return [str(file) for file in sorted(files, key=rank)]


def _test_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.glob("test_*.py"))


def outcome(path: Path, text: str) -> str:
    """Whether some test fails with this source, or hangs, or none: killed, hung or survived; in a child thrown away."""
    child = os.fork()
    if child == 0:
        _try(path, text)
    begun = time.monotonic()
    while time.monotonic() - begun < 10 * SECONDS:  # one that waits uses no processor
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "survived" if code == 0 else "hung" if code == -signal.SIGXCPU else "killed"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def _try(path: Path, text: str) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 10))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    sys.meta_path.insert(0, _Planted(name, path, text))
    code = 1
    with contextlib.suppress(BaseException):
        import pytest

        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests_of(path)]))
    os._exit(code)


def run(sample: int, seed: int, only: str, record: Path | None) -> dict[str, Any]:
    """Try the sample, and say how each mutant ended."""
    files = {path: path.read_text(encoding="utf-8") for path in sources() if only in str(path)}
    places = [(path, n) for path, text in files.items() for n in range(len(list(mutants(ast.parse(text)))))]
    if not places:
        raise SystemExit(f"no file of {', '.join(ROOMS)} has {only!r} in its path")
    for heavy in ("numpy", "torch", "scipy.optimize", "sklearn.linear_model", "pytest"):
        with contextlib.suppress(ImportError):
            importlib.import_module(heavy)
    for path in {frozenset(tests_of(path)): path for path in files}.values():
        if (end := outcome(path, files[path])) != "survived":
            raise SystemExit(f"the tests of {path.relative_to(SOURCE)} fail on the source as it is ({end})")
    ends: Counter[str] = Counter()
    survivors: list[dict[str, Any]] = []
    found: dict[str, Any] = {}
    for path, number in random.Random(seed).sample(places, min(sample, len(places))):
        text, line, words = mutated(files[path], number)
        started = time.monotonic()
        end = outcome(path, text)
        ends[end] += 1
        place = {"file": str(path.relative_to(SOURCE)), "line": line, "change": words}
        if end == "survived":
            survivors.append(place)
        tried = ends.total()
        print(f"{tried} of {sample}: {end}, {place}, {time.monotonic() - started:.1f} s", flush=True)
        caught = tried - len(survivors)
        found = {"places": len(places), "tried": tried, "seed": seed, "killed": caught, "of_these_hung": ends["hung"]}
        found |= {"percent": round(100 * caught / tried, 1), "survivors": survivors}
        if record is not None:
            record.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--only", default="", help="only files whose path has this in it; nothing is recorded")
    arguments = parser.parse_args()
    found = run(arguments.sample, arguments.seed, arguments.only, None if arguments.only else RECORD)
    print(json.dumps({name: value for name, value in found.items() if name != "survivors"}))


if __name__ == "__main__":
    main()
