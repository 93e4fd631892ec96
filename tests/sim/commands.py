"""`quorumlab chaos sim`, called as a function."""

from types import SimpleNamespace
from typing import Any

from jepsen_like.sim.runs.command import run_sim
from jepsen_like.sim.runs.sim_arguments import SIM_OPTIONS
from quorumlab.arguments import declare, parse

__all__ = ["parsed", "sim"]


def parsed(*arguments: str) -> SimpleNamespace:
    return parse(declare(run_sim, SIM_OPTIONS), arguments)


def sim(*arguments: str, sweep_seeds: Any = None) -> int:
    """Its exit code."""
    return run_sim(parsed(*arguments), sweep_seeds)
