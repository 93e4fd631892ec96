"""Which worker runs which tests, and in which order.

Workers are given whole files, and whole folders where the files share a cluster or a Spark, since
every worker would start its own.
"""

from collections import defaultdict
from math import inf

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # it has none

from tests import processor_time

__all__ = ["Scheduling", "put_in_order"]

# Folders whose files share a fixture that costs seconds of all cores.
SHARED = ("tests/integration/on_cluster", "tests/spark/on_spark")

# What takes longest in `make extra`, which has no record of its own.
LONGEST = (
    "tests/spark/test_on_connect.py",
    "tests/spark/test_standalone.py",
    "tests/integration/test_zookeeper_mode.py",
    "tests/spark/on_spark",
    "tests/integration/test_compare.py",
    "tests/differential/test_differential.py",
    "tests/kafka/test_interop_mixed.py",
    "tests/integration/test_killed_quorum.py",
)


def scope_of(file: str) -> str:
    """What goes to one worker as a whole: a file, or a folder of `SHARED`."""
    folder = file.rpartition("/")[0]
    return folder if folder in SHARED else file


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # as above
    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid.partition("::")[0])


def put_in_order(items: list[pytest.Item]) -> None:
    """First `LONGEST`, in its order; then files without a recorded cost; then the most expensive.

    So no worker is left with much at the end.
    """
    costs: defaultdict[str, float] = defaultdict(float)
    for file, seconds in processor_time.read().files.items():
        costs[scope_of(file)] += seconds
    longest = {scope: place for place, scope in enumerate(LONGEST)}

    def place_of(item: pytest.Item) -> tuple[float, float]:
        scope = scope_of(item.location[0])
        return longest.get(scope, inf), -costs.get(scope, inf)

    items.sort(key=place_of)
