"""The options of `quorumlab chaos sim`. Imports nothing of the simulator, which is slow to load."""

import argparse

__all__ = ["add_sim_arguments"]


def add_sim_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run the shipped cores on virtual time, with faults drawn from a seed, and check every"
        " invariant after every event. One seed has one run: what fails can be seen again. Without"
        " --cluster it is the metadata quorum alone. Exit codes: 0 nothing violated, 1 an exception"
        " in the simulator, 2 usage, 4 violated, 5 a sweep that proves nothing."
    )
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument(
        "--cluster", action="store_true", help="whole clusters: controllers, brokers, clients"
    )
    whose.add_argument(
        "--clients", action="store_true", help="judge the quorum only by what its clients see"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--seed", type=int, help="run this one seed (default: 0)")
    what.add_argument("--sweep", type=int, metavar="COUNT", help="run COUNT seeds from --first on")
    what.add_argument("--plants", action="store_true", help="list the bugs that can be planted")
    what.add_argument(
        "--catches",
        action="store_true",
        help="plant every bug, or those of --plant: each must be found within its bound",
    )
    parser.add_argument("--first", type=int, default=0, help="of a sweep (default: 0)")
    parser.add_argument("--processes", type=int, default=2, help="of a sweep (default: 2)")
    parser.add_argument("--plant", metavar="NAME", help="run on rules with this bug")
    parser.add_argument("--until-event", type=int, metavar="E", help="stop after event E")
    parser.add_argument(
        "--trace", choices=("short", "full"), help="print events: those that changed a node, or all"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
