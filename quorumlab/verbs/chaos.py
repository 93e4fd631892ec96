"""`quorumlab chaos`: what breaks things on purpose, one file an action."""

import argparse

from jepsen_like.sim.command import add_sim_arguments
from quorumlab.verbs import (
    chaos_export,
    chaos_museum,
    chaos_report,
    chaos_run,
    chaos_sim,
    chaos_timeline,
)

__all__ = ["add_parser"]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    chaos = verbs.add_parser("chaos", help="break things on purpose, and judge what is seen")
    actions = chaos.add_subparsers(required=True, metavar="ACTION")
    chaos_run.add_parser(actions)
    chaos_report.add_parser(actions)
    chaos_export.add_parser(actions)
    chaos_museum.add_parser(actions)
    sim = actions.add_parser("sim", help="run seeds on virtual time")
    add_sim_arguments(sim)
    chaos_sim.add_workload_arguments(sim)
    chaos_sim.add_parsers(actions)
    chaos_timeline.add_parser(actions)
