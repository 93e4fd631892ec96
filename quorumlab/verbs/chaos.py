"""`quorumlab chaos sim`: a quorum on virtual time, with faults, from a seed."""

import argparse

from jepsen_like.sim.command import add_sim_arguments, run_sim

__all__ = ["add_parser"]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    chaos = verbs.add_parser("chaos", help="break things on purpose: the deterministic simulator")
    actions = chaos.add_subparsers(required=True)
    sim = actions.add_parser("sim", help="run seeds on virtual time")
    add_sim_arguments(sim)
    sim.set_defaults(run=run_sim)
