"""Bugs to plant: each a one-line change of a shipped rule.

A simulator is only worth something if it finds what is known to be wrong. Each plant replaces one
named function of `quorum` by a version that forgets one clause; tests/sim/test_catches.py demands
that it is found within `seeds_max` seeds. docs/simulation.md has the record of how these bounds
were set, and why the survivors survive: what another rule guards too cannot be found alone.
"""

from contextlib import AbstractContextManager, nullcontext

from jepsen_like.sim.planted_logs import LOG_PLANTS, LOG_SURVIVORS
from jepsen_like.sim.planted_snapshots import SNAPSHOT_PLANTS, SNAPSHOT_SURVIVORS
from jepsen_like.sim.planted_voters import VOTER_PLANTS, VOTER_SURVIVORS
from jepsen_like.sim.planted_votes import VOTE_PLANTS, VOTE_SURVIVORS
from jepsen_like.sim.planting import Plants, planted_in

__all__ = ["PLANTS", "SURVIVORS", "planted"]

PLANTS: Plants = {**VOTE_PLANTS, **LOG_PLANTS, **SNAPSHOT_PLANTS, **VOTER_PLANTS}
SURVIVORS: Plants = {
    **VOTE_SURVIVORS,
    **LOG_SURVIVORS,
    **SNAPSHOT_SURVIVORS,
    **VOTER_SURVIVORS,
}


def planted(name: str | None) -> AbstractContextManager[None]:
    """Run with the planted bug `name`; None plants nothing."""
    if name is None:
        return nullcontext()
    return planted_in(PLANTS.get(name) or SURVIVORS[name])
