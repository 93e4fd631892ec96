"""A node with bugs planted: what the museum and the tests start in place of the shipped one.

    python -m jepsen_like.museum.planted_node PLANTS node --config ...

Everything after the names is for `quorumlab`. Nothing else plants anything in a process: a cluster
that is started by `quorumlab up` or `quorumlab node` cannot have a hole.
"""

import runpy
import sys

from jepsen_like.museum.holes import planted_all

__all__ = ["main"]


def main() -> None:
    plants, *arguments = sys.argv[1:]
    sys.argv = ["quorumlab", *arguments]
    with planted_all(plants):
        runpy.run_module("quorumlab", run_name="__main__")


if __name__ == "__main__":
    main()
