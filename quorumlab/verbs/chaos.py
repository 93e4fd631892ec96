"""`quorumlab chaos`: what breaks things on purpose, one file an action."""

import argparse

from quorumlab.arguments import Verbs, add_verbs

__all__ = ["add_options"]

_ACTIONS: Verbs = {
    "run": ("break a cluster of real processes, and judge what clients saw", "chaos_run"),
    "report": ("many runs over all kinds of faults, and a page about them", "chaos_report"),
    "export": ("write a history as EDN or JSON lines", "chaos_export"),
    "museum": ("known failures of Apache Kafka, red and green", "chaos_museum"),
    "scenario": ("the protocol as text: commands, and what comes of each", "chaos_scenario"),
    "sim": ("run seeds on virtual time", "chaos_sim:add_sim_options"),
    "replay": ("do a simulated run again, with the same digest", "chaos_sim:add_replay_options"),
    "shrink": ("the smallest simulated run that still fails", "chaos_sim:add_shrink_options"),
    "timeline": ("a history as lanes of processes and bands of faults", "chaos_timeline"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser.add_subparsers(required=True, metavar="ACTION"), _ACTIONS)
