"""`quorumlab chaos sim`, called as a function."""

from argparse import ArgumentParser
from typing import Any

from jepsen_like.sim.runs.command import run_sim
from jepsen_like.sim.runs.sim_arguments import add_sim_arguments

__all__ = ["parser", "sim"]


def parser() -> ArgumentParser:
    found = ArgumentParser()
    add_sim_arguments(found)
    return found


def sim(*arguments: str, sweep_seeds: Any = None) -> int:
    """Its exit code."""
    return run_sim(parser().parse_args(arguments), sweep_seeds)
