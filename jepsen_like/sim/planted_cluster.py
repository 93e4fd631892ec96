"""Bugs to plant in controllers and brokers: each a one-line change of a shipped rule.

As for the quorum (`jepsen_like.sim.planted`): what cannot be found is not guarded. Several may be
planted together, their names joined by commas, since some designs of old lacked two rules.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jepsen_like.sim.planted_controller import CONTROLLER_PLANTS, CONTROLLER_SURVIVORS
from jepsen_like.sim.planted_partitions import PARTITION_PLANTS, PARTITION_SURVIVORS
from jepsen_like.sim.planting import Plants, planted_in

__all__ = ["CLUSTER_PLANTS", "CLUSTER_SURVIVORS", "planted"]

CLUSTER_PLANTS: Plants = {**CONTROLLER_PLANTS, **PARTITION_PLANTS}
CLUSTER_SURVIVORS: Plants = {**CONTROLLER_SURVIVORS, **PARTITION_SURVIVORS}


@contextmanager
def planted(names: str | None) -> Iterator[None]:
    """Run with the planted bugs `names`; None plants nothing."""
    with ExitStack() as stack:
        for name in names.split(",") if names else ():
            plant = CLUSTER_PLANTS.get(name) or CLUSTER_SURVIVORS[name]
            stack.enter_context(planted_in(plant))
        yield
