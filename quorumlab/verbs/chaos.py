"""`quorumlab chaos`: what breaks things on purpose, one file an action."""

import argparse

from quorumlab.arguments import Verbs, add_verbs

__all__ = ["add_options"]

_ACTIONS: Verbs = {
    "run": (
        "break a cluster of real processes, and judge what clients saw",
        "quorumlab.verbs.chaos_run:add_options",
    ),
    "report": (
        "many runs over all kinds of faults, and a page about them",
        "quorumlab.verbs.chaos_report:add_options",
    ),
    "export": ("write a history as EDN or JSON lines", "quorumlab.verbs.chaos_export:add_options"),
    "museum": (
        "known failures of Apache Kafka, red and green",
        "quorumlab.verbs.chaos_museum:add_options",
    ),
    "sim": ("run seeds on virtual time", "quorumlab.verbs.chaos_sim:add_sim_options"),
    "replay": (
        "do a simulated run again, with the same digest",
        "quorumlab.verbs.chaos_sim:add_replay_options",
    ),
    "shrink": (
        "the smallest simulated run that still fails",
        "quorumlab.verbs.chaos_sim:add_shrink_options",
    ),
    "timeline": (
        "a history as lanes of processes and bands of faults",
        "quorumlab.verbs.chaos_timeline:add_options",
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser.add_subparsers(required=True, metavar="ACTION"), _ACTIONS)
