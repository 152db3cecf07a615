"""Kernels on a CPU: compiled by g++, a block's threads being real ones (see emulated.h).

It shows that they compute what the tensor code does on machines without a GPU. How a GPU's own compiler and scheduler
deal with them is seen on a GPU alone.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

COMPILER = shutil.which("g++")
_HEADER = Path(__file__).with_suffix(".h")
_MEMORY = 228 * 1024  # shared by the threads of a block, where a launch asks for it
_UNTOUCHED = 171

# What our wrappers around an instruction do in its place, by how the instruction begins.
_INSTRUCTIONS = {
    "cvt.rn.bf16x2": "pair = rounded_pair(first, second)",
    "st.global": "memcpy(p, r, sizeof(r))",
    "ldmatrix.sync.aligned.m8n8.x4.shared": "load_among_lanes(r, address, false)",
    "ldmatrix.sync.aligned.m8n8.x4.trans": "load_among_lanes(r, address, true)",
    "mma.sync.aligned.m16n8k16": "multiply_among_lanes(c, a, b0, b1)",
    "cp.async.cg": "copied(to, from, zeros)",
    "cp.async.": "",
    "ld.global.v4": "v = *p",
    "wgmma.": "",
    "fence.": "",
    "bar.arrive": "named(group + 8).pass(2 * threads, false)",
    "bar.sync": "named(group + BARRIER).pass(BARRIER == 1 ? threads : 2 * threads, true)",
}

_FRAME = """
#include "{header}"
{kernels}
alignas(128) unsigned char shared[{memory}];
template <auto kernel> struct Run;
template <class... A, void (*kernel)(A...)>
struct Run<kernel> {{
    static void on(int columns, int rows, int width, int height, A... all) {{
        launch({{columns, rows, 1}}, {{width, height, 1}}, [&] {{ kernel(all...); }});
    }}
}};
extern "C" {{
{exported}
}}
"""


def _instruction(match: re.Match[str]) -> str:
    text = match.group(0)
    if "WGMMA" in text:
        return "multiply_held(d, a, b);" if '"r"(a[0])' in text else "multiply_described<ACROSS>(d, a, b);"
    if '(""' in text:  # which only keeps the compiler from moving something
        return ";"
    name = re.findall(r'"([a-z][^ "]*)', text)[0]
    instead = next(instead for begin, instead in _INSTRUCTIONS.items() if name.startswith(begin))
    return instead.replace("BARRIER", "1" if "group + 1" in text else "8") + ";"


def _for_a_cpu(text: str) -> str:
    text = re.sub(r"asm(?: volatile)?\(.*?\);", _instruction, text, flags=re.DOTALL)
    return text.replace("extern __shared__", "extern")


class Emulated:
    """Some kernels of some sources, built in a folder. `threads` of a block, unless as many as a launch says."""

    def __init__(
        self, folder: Path, sources: Sequence[Path], expressions: Sequence[str], threads: int | None = None
    ) -> None:
        self.sources, self.expressions, self.threads = tuple(sources), list(expressions), threads
        exported = "\n".join(f"auto run_{i} = Run<{name}>::on;" for i, name in enumerate(expressions))
        kernels = "\n".join(_for_a_cpu(source.read_text(encoding="utf-8")) for source in sources)
        text = _FRAME.format(header=_HEADER, kernels=kernels, memory=_MEMORY, exported=exported)
        (folder / "kernels.cpp").write_text(text, encoding="utf-8")
        # Products and sums are rounded separately, unless the code says otherwise.
        options = ["-O1", "-std=c++20", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-pthread"]
        assert COMPILER is not None
        command = [COMPILER, *options, "-o", str(folder / "kernels.so"), str(folder / "kernels.cpp")]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(folder / "kernels.so"))

    def kernel(
        self,
        sources: tuple[Path, ...],
        expression: str,
        memory: int = 0,
        options: tuple[str, ...] = (),
        capability: str | None = None,
    ) -> Callable[..., None]:
        """In the place of `nvrtc.kernel`."""
        assert sources == self.sources
        address = ctypes.c_void_p.in_dll(self.library, f"run_{self.expressions.index(expression)}").value
        shared = (ctypes.c_ubyte * _MEMORY).in_dll(self.library, "shared")
        assert address is not None

        def launch(grid: Any, block: Any, args: list[Any], shared_mem: int = 0) -> None:
            assert shared_mem == memory
            ctypes.memset(shared, _UNTOUCHED, _MEMORY)
            kinds = [_kind(argument) for argument in args]
            plain = [argument.data_ptr() if isinstance(argument, Tensor) else argument for argument in args]
            call = ctypes.CFUNCTYPE(None, *[ctypes.c_int] * 4, *kinds)(address)
            call(*grid[:2], *(block[:2] if self.threads is None else (self.threads, 1)), *plain)
            assert set(shared[memory:]) <= {_UNTOUCHED}, "more shared memory is used than was asked for"

        return launch


def _kind(argument: Tensor | float) -> Any:
    if isinstance(argument, Tensor):
        return ctypes.c_void_p
    return ctypes.c_int if isinstance(argument, int) else ctypes.c_double
