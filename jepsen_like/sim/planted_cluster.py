"""Bugs to plant in controllers and brokers: each a one-line change of a shipped rule."""

from contextlib import AbstractContextManager, nullcontext

from jepsen_like.sim.planting import Plants, planted_in

__all__ = ["CLUSTER_PLANTS", "CLUSTER_SURVIVORS", "planted"]

CLUSTER_PLANTS: Plants = {}
CLUSTER_SURVIVORS: Plants = {}


def planted(name: str | None) -> AbstractContextManager[None]:
    """Run with the planted bug `name`; None plants nothing."""
    if name is None:
        return nullcontext()
    return planted_in(CLUSTER_PLANTS.get(name) or CLUSTER_SURVIVORS[name])
