"""What a run says while it goes on: plain dictionaries, one line each in metrics.jsonl.

Every record has `kind` and `step`. All but start, hint and finished are written to the file:

- `start`: `steps`, `resumed` (the step continued from, 0 for a new run), `device`, `parameters`, `message`
- `hint`: `seconds` that the rest will take, `message`; only where it is worth saying
- `train`: `steps` covered, `loss`, `terms`, `mask`, `predicted`, `used`, `precision`, `coverage`, `prior`,
  `thresholds`, `lr`
- `evaluation`: `on` (test, held_out or validation), `accuracy`, `gm`, `recall`, `confusion`
- `warning`: `message`
- `generation`: training starts afresh with more labels: `generation` (from 0), `adopted` and `precision` by class,
  `message`
- `shares`: with `--target-prior estimated`: `share`, `low`, `high` (90 %) and `doubly_robust` of the unlabelled
  examples by class, and the `target` of all examples that training goes on with
- `finished`: `message`, `result` (the content of result.json); the last record of every run that ends well

Whatever depends on the clock or the machine stands under `timing`: `seconds` so far, `steps_per_second`,
`images_per_second`, `memory_gib`. Shares and accuracies are in percent, per class where a list.
"""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
