"""All bugs that can be planted, in the quorum, in clusters and in checkers, by name."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jepsen_like.planted.checker_bugs import CHECKER_PLANTS
from jepsen_like.planted.cluster_bugs import CLUSTER_PLANTS, CLUSTER_SCHEDULED, CLUSTER_SURVIVORS
from jepsen_like.planted.planting import Plants, planted_in
from jepsen_like.planted.quorum_bugs import PLANTS, SURVIVORS

__all__ = ["EVERY_PLANT", "planted"]

EVERY_PLANT: Plants = {
    **PLANTS,
    **SURVIVORS,
    **CLUSTER_PLANTS,
    **CLUSTER_SCHEDULED,
    **CLUSTER_SURVIVORS,
    **CHECKER_PLANTS,
}


@contextmanager
def planted(names: str | None) -> Iterator[None]:
    """Run with the planted bugs `names`, joined by commas; None plants nothing."""
    with ExitStack() as stack:
        for name in names.split(",") if names else ():
            stack.enter_context(planted_in(EVERY_PLANT[name]))
        yield
