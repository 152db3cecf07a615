"""A machine that has torch, numpy and pillow, and nothing else."""

import subprocess
import sys

import numpy as np

PROGRAM = """
import sys
for name in ("rich", "matplotlib", "sklearn", "scipy", "pyarrow", "safetensors"):
    sys.modules[name] = None  # importing it now fails
sys.stdout.isatty = lambda: True
from cadr.cli.main import main
assert main(["recipes", RECIPE, "--only", "cifar10-gamma50-c"]) == 0
flags = ["--steps", "4", "--batch", "4", "--ratio", "2", "--evaluations", "2", "--hidden", "8", "--model", "mlp"]
sys.exit(main(["train", "mine.npz", *flags, "--out", "run"]))
"""


def test_training_and_listing_need_no_package_of_the_command_line(tmp_path):
    recipe = tmp_path / "r.toml"
    recipe.write_text('[rows]\ncifar10-gamma50-cadr = { data = "cifar10", algorithm = "cadr" }\n')
    rng = np.random.default_rng(0)
    labels = np.array([0, 1] * 20)
    x = rng.normal(size=(40, 3)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x=x, y=np.where(np.arange(40) < 8, labels, -1), x_test=x, y_test=labels)
    program = f"RECIPE = {str(recipe)!r}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cifar10-gamma50-cadr" in done.stdout
    assert "step 4 of 4" in done.stdout
