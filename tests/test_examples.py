"""The examples of an exported model in other people's engines, as somebody without our package would run them."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.inference.predictor import Predictor
from tests.report.own_runs import COLUMNS, NAMES, table

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed: pip install pyspark")
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
def test_spark(trees, tmp_path):
    run_example("predict_in_spark.py", trees, tmp_path, {"SPARK_LOCAL_IP": "127.0.0.1"})


def run_example(example, run, folder, environment):
    """Rows and predictions beside each other, by a program that cannot import cadr."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    assert main(["export", str(run), "--out", str(folder / "exported"), "--formats", "torch"]) == 0
    x, _ = table(2_000, seed=11)
    ids = [f"tree {i}" for i in range(len(x))]
    pq.write_table(pa.table({"id": ids, **dict(zip(COLUMNS, x.T, strict=True))}), folder / "rows.parquet")
    (folder / "blocked" / "cadr").mkdir(parents=True)
    (folder / "blocked" / "cadr" / "__init__.py").write_text("raise ImportError('it should do without')\n")
    paths = [str(folder / "blocked"), *filter(None, [os.environ.get("PYTHONPATH")])]
    arguments = [folder / "exported" / "model.pt2", folder / "rows.parquet", folder / "predictions"]
    subprocess.run(
        [sys.executable, str(EXAMPLES / example), *map(str, arguments)],
        check=True,
        cwd=folder,
        timeout=280,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable},
    )
    found = pq.read_table(folder / "predictions", columns=["id", "predicted", "probability"]).to_pydict()
    order = np.argsort([int(name.split()[1]) for name in found["id"]])
    expected = Predictor.load(run, device="cpu").probabilities(x).numpy()
    assert [found["id"][i] for i in order] == ids
    assert [found["predicted"][i] for i in order] == NAMES[expected.argmax(1)].tolist()
    np.testing.assert_allclose([found["probability"][i] for i in order], expected.max(1), atol=1e-5)
