"""A node that has some of the planted bugs: the museum and the tests start it in place of the shipped
one. Nothing else plants anything in a process.

    python -m jepsen_like.museum.planted_node PLANTS node --config ...
"""

import runpy
import sys

from jepsen_like.planted.every_bug import planted


def main() -> None:
    plants, *arguments = sys.argv[1:]
    sys.argv = ["quorumlab", *arguments]
    with planted(plants):
        runpy.run_module("quorumlab", run_name="__main__")


if __name__ == "__main__":
    main()
