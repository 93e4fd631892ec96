"""The options of `chaos museum`, `scenario`, `sim`, `replay` and `shrink`.

These verbs load the simulator, which takes a second or two: later, once a command line is
understood.
"""

import argparse
from typing import Any

from jepsen_like.sim.runs.sim_arguments import add_sim_arguments
from jepsen_like.workloads.registry import WORKLOADS
from quorum.raftos.engines import NATIVE
from quorumlab.arguments import declare, later
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
_PLAN = f"""
    --design DESIGN  quorum, or {", ".join(DESIGNS)} (default: quorum)
    --zookeepers N  of a zk design (default: 1)
    --engine ENGINE  native; raftos cannot be simulated
    --workload NAME  {", ".join(SIMULATED)}
    --faults KIND,…  none, or kinds as in `chaos run`; kill:majority names the role (default: \
      {FAULTS}, and of a zk design {ZK_FAULTS})
    --seconds N  of virtual time (default: 20)
    --no-idempotence  of producers
    --invariants  end a run at the first invariant that is broken"""


def add_scenario_options(parser: argparse.ArgumentParser) -> None:
    table = """
        scenario SCENARIO [*]  its number, its name, a schedule, a file; all: every scenario that \
          is shipped
        --rewrite  write what comes of it into the files
        --plant NAME  play on rules with this bug
        --commands  list what a scenario may say"""
    declare(parser, later("chaos_scenario:run"), table)


def add_museum_options(parser: argparse.ArgumentParser) -> None:
    table = """
        item ITEM [?]  B5, D1, R2, …: tell this one; all: play all
        --seeds N  count runs with the times of N seeds
        --real  on real processes, which takes a minute an item
        --format table|json|markdown [table]"""
    declare(parser, later("chaos_museum:run"), table)


def add_sim_options(parser: argparse.ArgumentParser) -> None:
    """Options of a simulation without clients, then those of one with a workload."""
    add_sim_arguments(parser)
    table = f"""{_PLAN}
    --seeds A..B  a run for each (with --workload)
    --out DIR  keep runs, each in DIR/seed-N
    --on local|spark [local]  where the seeds are run (default: local)
    --master URL  run them on Spark: local[*], spark://…
    --remote URL  run them on Spark, by its Connect server: sc://HOST:PORT
    --table PATH  write what each seed came to, as Parquet: where Spark can write, and nothing is
    --timeout N [positive 86400]  seconds until Spark's job is given up (default: a day)"""
    declare(parser, later("chaos_sim:run_sim"), table)
    parser.set_defaults(**SIM_DEFAULTS)


def add_replay_options(parser: argparse.ArgumentParser) -> None:
    table = f"""
    directory DIR [?]  of a kept run
    --seed N
    --plant NAME  run on rules with this bug{_PLAN}
    --out DIR  keep it there"""
    declare(parser, later("chaos_sim:run_replay"), table)
    parser.set_defaults(**dict.fromkeys(SIM_DEFAULTS))  # so that the options given are known


def add_shrink_options(parser: argparse.ArgumentParser) -> None:
    table = """
        directory DIR  of a kept run
        --out DIR  default: DIR/shrunk"""
    declare(parser, later("chaos_sim:run_shrink"), table)
