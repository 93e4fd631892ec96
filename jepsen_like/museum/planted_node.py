"""All the bugs that can be planted, and a node that has some of them.

    python -m jepsen_like.museum.planted_node PLANTS node --config ...

The museum and the tests start it in place of the shipped node. Everything after the names is for
`quorumlab`. Nothing else plants anything in a process: a cluster
that is started by `quorumlab up` or `quorumlab node` cannot have a planted bug.
"""

import runpy
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jepsen_like.planted.cluster_bugs import CLUSTER_PLANTS, CLUSTER_SCHEDULED, CLUSTER_SURVIVORS
from jepsen_like.planted.planting import Plants, planted_in
from jepsen_like.planted.quorum_bugs import PLANTS, SURVIVORS

__all__ = ["ALL_PLANTS", "main", "planted_all"]

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


def main() -> None:
    plants, *arguments = sys.argv[1:]
    sys.argv = ["quorumlab", *arguments]
    with planted_all(plants):
        runpy.run_module("quorumlab", run_name="__main__")


if __name__ == "__main__":
    main()
