"""How often the 95 % interval of a mean that AIPW estimates from `cadr diagnose --weights-out` holds the truth.

    python benchmarks/weights_coverage.py        # writes weights_coverage.json; goes on where it was

Simulated surveys as in docs/weights.md: three groups, of which people are interviewed with different probabilities, two
questions that everybody answered, and an income that depends on group and answers. The truth is the mean income of the
whole population. Beside it the interviewed alone, and the interval that takes the
propensities for known.
"""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.stats import t as student

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.explain import explain  # noqa: E402

from cadr.data.pool import Pool  # noqa: E402
from cadr.diagnosis.weights import row_weights  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
SETTINGS = {"groups apart": 1.0}  # as a factor
WAYS = ("aipw", "propensities taken for known", "interviewed alone")
FIRST, DRAWS, ROWS, REPLICATES = (
    2000,
    300,
    1000,
    25,
)  # seeds from FIRST on: how intervals are made was decided on others
SHARES, INTERVIEWED, INCOME = (0.5, 0.3, 0.2), (0.35, 0.12, 0.08), (30.0, 24.0, 15.0)
CENTRES = np.array([[0.0, 0.0], [2.5, 0.5], [0.5, 3.0]])


def truth(apart: float) -> float:
    """The mean income of the population."""
    return float(np.array(SHARES) @ (np.array(INCOME) + 2 * apart * CENTRES[:, 0]))


def one(apart: float, seed: int) -> dict[str, list[float]]:
    """Intervals from one survey."""
    random = np.random.default_rng(seed)
    group = random.choice(3, ROWS, p=SHARES)
    answers = apart * CENTRES[group] + random.normal(size=(ROWS, 2))
    income = np.array(INCOME)[group] + 2 * answers[:, 0] + 4 * random.normal(size=ROWS)
    known = random.random(ROWS) < np.array(INTERVIEWED)[group]
    pool = Pool(answers.astype(np.float32), np.where(known, group, -1), ("town", "village", "farm"), "survey")
    weights = row_weights(pool, seed=seed, replicates=REPLICATES)
    x = np.column_stack([np.ones(ROWS), answers])
    root = np.sqrt(weights.weight[known])[:, None]
    guess = x @ np.linalg.lstsq(root * x[known], root[:, 0] * income[known], rcond=None)[0]
    estimate = weights.mean(np.where(known, income, np.nan), guess)
    error = np.zeros(ROWS)
    error[known] = (income - guess)[known] * weights.weight[known]
    fixed = float(np.std(guess + error, ddof=1)) / math.sqrt(ROWS)
    naive, spread = float(income[known].mean()), float(income[known].std(ddof=1)) / math.sqrt(known.sum())
    return {
        "aipw": [round(estimate.value, 5), round(estimate.standard_error, 5)],
        "propensities taken for known": [round(estimate.value, 5), round(fixed, 5)],
        "interviewed alone": [round(naive, 5), round(spread, 5)],
    }


def half_width(way: str, found: list[float]) -> float:
    quantile = float(student.ppf(0.975, REPLICATES - 1)) if way == "aipw" else 1.96
    return quantile * found[1]


def build(record: dict[str, Any]) -> dict[str, Any]:
    """How often each interval holds the truth (%), its bias and mean width, by setting."""
    summary: dict[str, Any] = {}
    for name, draws in record["surveys"].items():
        summary[name] = {"surveys": len(draws)}
        for way in WAYS:
            errors = np.array([one[way][0] for one in draws.values()]) - truth(SETTINGS[name])
            half = np.array([half_width(way, one[way]) for one in draws.values()])
            summary[name][way] = {
                "covered": round(100 * float((np.abs(errors) <= half).mean()), 1),
                "bias": round(float(errors.mean()), 3),
                "width": round(2 * float(half.mean()), 3),
            }
    return summary


def main() -> None:
    explain(__doc__)
    record: dict[str, Any] = {"rows": ROWS, "replicates": REPLICATES, "surveys": {name: {} for name in SETTINGS}}
    if RECORD.exists():
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    for seed in range(FIRST, FIRST + DRAWS):
        for name, apart in SETTINGS.items():
            if str(seed) not in record["surveys"][name]:
                record["surveys"][name][str(seed)] = one(apart, seed)
        record["summary"] = build(record)
        RECORD.write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(json.dumps(record["summary"], indent=1))


if __name__ == "__main__":
    main()
