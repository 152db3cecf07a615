"""The kernels of views.cu on a CPU: compiled by g++, a block's threads being real ones (see emulated.h).

It shows that they compute what the tensor code does on machines without a GPU; how a GPU's own compiler and scheduler
deal with them is seen in test_cuda.py.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from cadr import views

COMPILER = shutil.which("g++")
_KERNELS = Path(views.__file__).parent / "kernels" / "views.cu"
_HERE = Path(__file__).parent
_THREADS = 96  # three warps, the fewest that the kernels can do with
_MEMORY = 160 * 1024  # shared by the threads of a block
_UNTOUCHED = 171

_SOURCE = """
#include "emulated.h"
#include "{kernels}"
u8 shared[{memory}];
template <auto kernel> struct Run;
template <class... A, void (*kernel)(A...)>
struct Run<kernel> {{
    static void on(int blocks, A... all) {{ launch(blocks, {threads}, [&] {{ kernel(all...); }}); }}
}};
extern "C" {{
auto run_weak_view = Run<weak_view>::on;
auto run_strong_view = Run<strong_view>::on;
auto run_carry_out = Run<carry_out>::on;
}}
"""


def build(folder: Path) -> ctypes.CDLL:
    source, library = folder / "views.cpp", folder / "views.so"
    source.write_text(_SOURCE.format(kernels=_KERNELS, memory=_MEMORY, threads=_THREADS), encoding="utf-8")
    # Products and sums are rounded separately, as on the GPU.
    options = ["-O1", "-std=c++20", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-pthread", f"-I{_HERE}"]
    assert COMPILER is not None
    subprocess.run([COMPILER, *options, "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library))


def kernels(library: ctypes.CDLL) -> Callable[..., Any]:
    """In the place of `nvrtc.kernel`: a kernel by its name, to be launched as on a GPU."""
    shared = (ctypes.c_ubyte * _MEMORY).in_dll(library, "shared")

    def kernel(sources: tuple[Path, ...], name: str, memory: int, options: tuple[str, ...]) -> Callable[..., None]:
        assert sources == (_KERNELS,)
        address = ctypes.c_void_p.in_dll(library, f"run_{name}").value
        assert address is not None

        def launch(grid: Any, block: Any, args: list[Tensor | int], shared_mem: int = 0) -> None:
            assert shared_mem == memory
            ctypes.memset(shared, _UNTOUCHED, _MEMORY)
            kinds = [ctypes.c_void_p if isinstance(argument, Tensor) else ctypes.c_int for argument in args]
            plain = [argument.data_ptr() if isinstance(argument, Tensor) else argument for argument in args]
            ctypes.CFUNCTYPE(None, ctypes.c_int, *kinds)(address)(grid[0], *plain)
            assert set(shared[memory:]) <= {_UNTOUCHED}, "more shared memory is used than was asked for"

        return launch

    return kernel
