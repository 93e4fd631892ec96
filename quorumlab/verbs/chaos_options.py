"""The options of `chaos museum`, `scenario`, `sim`, `replay` and `shrink`.

These verbs load the simulator, which takes a second or two: they are imported once a command line
is understood. Who asks for help, or has misspelt an option, does not wait for it.
"""

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from jepsen_like.sim.runs.sim_arguments import add_sim_arguments
from jepsen_like.workloads.registry import WORKLOADS
from quorum.node.engines import NATIVE
from quorumlab.arguments import loading_modules, positive
from wire.zk.designs import DESIGNS

__all__ = [
    "FAULTS",
    "SIMULATED",
    "SIM_DEFAULTS",
    "ZK_FAULTS",
    "add_museum_options",
    "add_replay_options",
    "add_scenario_options",
    "add_shrink_options",
    "add_sim_options",
]

FAULTS = "kill,partition,pause"
ZK_FAULTS = "kill,pause,kill-zookeeper,cut-zookeeper"
_ONLY_ON_PROCESSES = ("admin", "partition-epoch")
SIMULATED = tuple(name for name in sorted(WORKLOADS) if name not in _ONLY_ON_PROCESSES)
SIM_DEFAULTS: dict[str, Any] = {
    "design": "quorum",
    "zookeepers": 1,
    "engine": NATIVE,
    "seconds": 20,
    "no_idempotence": False,
    "invariants": False,
}


def _later(verb: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        with loading_modules():
            module = import_module(f"quorumlab.verbs.chaos_{verb}")
        code: int = getattr(module, function)(args)
        return code

    return run


def add_scenario_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "scenario",
        nargs="*",
        metavar="SCENARIO",
        help="its number, its name, a schedule, a file; all: every scenario that is shipped",
    )
    add("--rewrite", action="store_true", help="write what comes of it into the files")
    add("--plant", metavar="NAME", help="play on rules with this bug")
    add("--commands", action="store_true", help="list what a scenario may say")
    parser.set_defaults(run=_later("scenario", "run"))


def add_museum_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("item", nargs="?", metavar="ITEM", help="B5, D1, R2, …: tell this one; all: play all")
    add("--seeds", type=int, metavar="N", help="count runs with the times of N seeds")
    add("--real", action="store_true", help="on real processes, which takes a minute an item")
    add("--format", choices=("table", "json", "markdown"), default="table")
    parser.set_defaults(run=_later("museum", "run"))


def add_sim_options(parser: argparse.ArgumentParser) -> None:
    """Options of a simulation without clients, then those of one with a workload."""
    add = parser.add_argument
    add_sim_arguments(parser)
    _add_plan_arguments(parser)
    add("--seeds", metavar="A..B", help="a run for each (with --workload)")
    add("--out", type=Path, metavar="DIR", help="keep runs, each in DIR/seed-N")
    _add_master_argument(parser)
    parser.set_defaults(run=_later("sim", "run_sim"), **SIM_DEFAULTS)


def add_replay_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("directory", type=Path, nargs="?", metavar="DIR", help="of a kept run")
    add("--seed", type=int, metavar="N")
    add("--plant", metavar="NAME", help="run on rules with this bug")
    _add_plan_arguments(parser)
    add("--out", type=Path, metavar="DIR", help="keep it there")
    parser.set_defaults(
        run=_later("sim", "run_replay"), **dict.fromkeys(SIM_DEFAULTS)
    )  # so that the options given are known


def add_shrink_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("directory", type=Path, metavar="DIR", help="of a kept run")
    add("--out", type=Path, metavar="DIR", help="default: DIR/shrunk")
    parser.set_defaults(run=_later("sim", "run_shrink"))


def _add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--design", help=f"quorum, or {', '.join(DESIGNS)} (default: quorum)")
    add("--zookeepers", type=int, metavar="N", help="of a zk design (default: 1)")
    add("--engine", help="native; raftos cannot be simulated")
    add("--workload", metavar="NAME", help=", ".join(SIMULATED))
    add(
        "--faults",
        metavar="KIND,…",
        help=f"none, or kinds as in `chaos run`; kill:majority names the role (default: {FAULTS}, "
        f"and of a zk design {ZK_FAULTS})",
    )
    add("--seconds", type=int, metavar="N", help="of virtual time (default: 20)")
    add("--no-idempotence", action="store_true", help="of producers")
    add("--invariants", action="store_true", help="end a run at the first invariant that is broken")


def _add_master_argument(sim: argparse.ArgumentParser) -> None:
    sim.add_argument("--master", metavar="URL", help="run the seeds on Spark: local[*], spark://…")
    sim.add_argument(
        "--timeout",
        type=positive,
        default=24 * 3600.0,
        metavar="N",
        help="seconds until Spark's job is given up (default: a day)",
    )
