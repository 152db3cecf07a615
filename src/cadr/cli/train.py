"""`cadr train DATA`: one run, from flags or a recipe, that can be stopped at any moment and continued."""

from __future__ import annotations

import shlex
from argparse import Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cadr.cli.main import Parser, Subparsers
    from cadr.training.plan import Plan

_DESCRIPTION = """\
Train on half-labelled data, or on a benchmark whose labels a protocol takes away.

  cadr train photos/ --labels labels.csv
  cadr train digits --protocol longtail --n-max 20 --gamma 20 --algorithm cadr --steps 400 --seed 7 --out runs/x
  cadr train recipes/hu2022.toml:cifar10-gamma50-cadr

DATA is a benchmark's name, a folder, an .npz, .npy, CSV or Parquet file, or a recipe, whose values the flags override.
The run is a folder: the same command continues it after a stop, and a finished run is left alone. The flags shown below
are those of the chosen algorithm, protocol, model and views: add --algorithm fixmatch to see FixMatch's instead.

Data of your own that are features (a table, embeddings, --features) are learned in seconds by an ensemble of simple
learners, unless you name an algorithm; it uses every label, and is judged by cross-fitting. Pictures themselves take a
network, as with --algorithm cap_cai: model, steps, batch, lr and ema are then chosen by the data where you do not give
them (the defaults shown below are for benchmarks), and a fifth of the labels is held out to judge the result on.
"""


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "train",
        usage="cadr train DATA [--out RUN] [flags]",
        help="train on data or by a recipe",
        description=_DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help="what to learn from, or a recipe")
    parser.add_argument("--out", type=Path, metavar="RUN", help="the run's folder (default: runs/DATA-ALGORITHM-seedN)")
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="{tensorboard,mlflow,wandb}",
        help="send curves there, too; may be given more than once (each is an extra: pip install 'cadr[tensorboard]')",
    )
    parser.prepare = _prepare
    parser.set_defaults(run=run)


def _prepare(parser: Parser, arguments: list[str]) -> None:
    from cadr.cli.run_flags import add_choices, prepare

    add_choices(parser)
    prepare(parser, arguments)


def run(namespace: Namespace) -> int:
    from cadr.cli.main import INTERRUPTED
    from cadr.cli.recipes import is_recipe
    from cadr.cli.run_flags import default_out, read_flat
    from cadr.inference.evaluation import closing_words
    from cadr.training import distributed, train
    from cadr.training.loggers import follow
    from cadr.training.plan import Opened, chosen_algorithm, plan
    from cadr.training.result import quoted_of
    from cadr.training.tracking import check_trackers, tracked
    from cadr.training.warm_start import next_run
    from cadr.utils import ranks

    check_trackers(namespace.log)
    flat, opened = read_flat(namespace), Opened()
    before = flat.get("continue_from")
    if before is not None and namespace.out is None:
        out = next_run(Path(before))
    else:
        out = namespace.out or default_out(namespace.data, flat, lambda: chosen_algorithm(flat, opened))
    _check_free(out)
    distributed.join(flat.get("device", "auto"))

    def planning() -> Plan:
        return plan(flat, opened, out=out, recipe=is_recipe(namespace.data))

    if ranks.number():
        return _follow_the_first(planning, out)
    planned = ranks.together(planning)
    for line in planned.sentences():
        print(line, flush=True)
    try:
        result = follow(tracked(train(planned.config, out, planned.pool), out, namespace.log))["result"]
    except KeyboardInterrupt:
        print(_stopped(out), flush=True)
        return INTERRUPTED
    for line in closing_words(out, planned.config, planned.pool, planned.diagnosis):
        print(line)
    run_folder = shlex.quote(str(out))  # to be copied into a shell
    evaluate = "" if quoted_of(result) is None else f"cadr evaluate {run_folder} (every class), "
    print(f"Next: {evaluate}cadr report {run_folder} (a page to look at),")
    print(f"      cadr predict {run_folder} DATA --out predictions.csv")
    return 0


def _follow_the_first(planning: Callable[[], Plan], out: Path) -> int:
    """What another rank than the first does: it trains, and leaves all words to that one."""
    from cadr.cli.main import INTERRUPTED
    from cadr.training import train
    from cadr.utils import ranks

    try:
        planned = ranks.together(planning)
        for _ in train(planned.config, out, planned.pool):
            pass
    except KeyboardInterrupt:
        return INTERRUPTED
    except ranks.SharedError:
        return 2
    return 0


def _stopped(out: Path) -> str:
    from cadr.training import checkpoint

    if not (out / checkpoint.CURRENT).is_dir():
        return "Stopped before anything was saved. The same command starts again."
    return f"Stopped; the run is saved in {out}. The same command continues it."


def _check_free(out: Path) -> None:
    """A run among somebody's pictures is hard to get out again, and would be taken for data."""
    from cadr.errors import ConfigError

    if out.is_dir() and not (out / "config.toml").exists():
        ours = "config.toml.new"  # what a kill leaves of the first file of a run
        names = sorted(f.name for f in out.iterdir() if not f.name.startswith("."))
        other = next((name for name in names if name != ours), None)
        if other is not None:
            raise ConfigError(f"{out} holds other things, such as {other}; name a new folder for the run with --out")
