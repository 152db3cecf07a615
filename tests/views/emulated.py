"""The kernels of views.cu on a CPU: compiled by g++, a block's threads being real ones (see emulated.h).

It shows that they compute what the tensor code does on machines without a GPU; how a GPU's own compiler and scheduler
deal with them is seen in test_cuda.py.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import torch
from torch import Tensor

from cadr import views

COMPILER = shutil.which("g++")
THREADS = 96  # three warps, the fewest that the kernels can do with
_KERNELS = Path(views.__file__).parent / "kernels" / "views.cu"
_HERE = Path(__file__).parent

_SOURCE = """
#include "emulated.h"
#include "{kernels}"
u8 shared[{memory}];
extern "C" void run_weak_view(const u8* a, const u64* b, u8* c, int n, int h, int w, int reach, int flip) {{
    launch(n, {threads}, [&] {{ weak_view(a, b, c, n, h, w, reach, flip); }});
}}
extern "C" void run_strong_view(const u8* a, const u64* b, u8* c, int n, int h, int w, int r, int f, int o, int cut) {{
    launch(n, {threads}, [&] {{ strong_view(a, b, c, n, h, w, r, f, o, cut); }});
}}
extern "C" void run_carry_out(const u8* a, const long long* b, const double* c, const double* d, const u64* e, u8* f,
                              int n, int h, int w) {{
    launch(n, {threads}, [&] {{ carry_out(a, b, c, d, e, f, n, h, w); }});
}}
"""


def build(folder: Path) -> ctypes.CDLL:
    source, library = folder / "views.cpp", folder / "views.so"
    source.write_text(_SOURCE.format(kernels=_KERNELS, memory=160 * 1024, threads=THREADS), encoding="utf-8")
    # Products and sums are rounded separately, as on the GPU.
    options = ["-O1", "-std=c++20", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-pthread", f"-I{_HERE}"]
    assert COMPILER is not None
    subprocess.run([COMPILER, *options, "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library))


def run(library: ctypes.CDLL, kernel: str, images: Tensor, *arguments: Tensor | int) -> Tensor:
    """Views of uint8 images (n, h, w, 3); of the arguments, the tensors stand before the views, the numbers behind."""
    result = torch.full_like(images, 77)
    tensors = [images, *(a.contiguous() for a in arguments if isinstance(a, Tensor)), result]
    numbers = [*images.shape[:3], *(a for a in arguments if not isinstance(a, Tensor))]
    getattr(library, f"run_{kernel}")(*(ctypes.c_void_p(t.data_ptr()) for t in tensors), *map(ctypes.c_int, numbers))
    return result
