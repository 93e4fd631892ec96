"""A node that has some of the planted bugs.

    python -m jepsen_like.museum.planted_node PLANTS node --config ...

The museum and the tests start it in place of the shipped node. Nothing else plants anything in a
process.
"""

import runpy
import sys

from jepsen_like.planted.every_bug import planted

__all__ = ["main"]


def main() -> None:
    plants, *arguments = sys.argv[1:]
    sys.argv = ["quorumlab", *arguments]
    with planted(plants):
        runpy.run_module("quorumlab", run_name="__main__")


if __name__ == "__main__":
    main()
