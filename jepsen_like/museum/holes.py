"""All the bugs that can be planted, in any core."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jepsen_like.sim.planted.cluster import CLUSTER_PLANTS, CLUSTER_SCHEDULED, CLUSTER_SURVIVORS
from jepsen_like.sim.planted.planting import Plants, planted_in
from jepsen_like.sim.planted.quorum import PLANTS, SURVIVORS

__all__ = ["ALL_PLANTS", "planted_all"]

ALL_PLANTS: Plants = {
    **CLUSTER_PLANTS,
    **CLUSTER_SCHEDULED,
    **CLUSTER_SURVIVORS,
    **PLANTS,
    **SURVIVORS,
}


@contextmanager
def planted_all(names: str) -> Iterator[None]:
    """With these bugs, joined by commas; "" plants nothing."""
    with ExitStack() as stack:
        for name in names.split(",") if names else ():
            stack.enter_context(planted_in(ALL_PLANTS[name]))
        yield
