"""Bugs to plant in controllers and brokers: each a one-line change of a shipped rule.

As for the quorum (`jepsen_like.planted.quorum_bugs`): a simulator is worth what it finds. Most are
found at random, within `seeds_max` seeds; those that need a rare schedule have it in
`jepsen_like/scenarios/schedules/partition`. Several may be planted together, their names joined by
commas, since some designs of old lacked two rules.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jepsen_like.planted.answer_bugs import ANSWER_PLANTS
from jepsen_like.planted.boundary_bugs import BOUNDARY_PLANTS, BOUNDARY_SURVIVORS
from jepsen_like.planted.controller_bugs import CONTROLLER_PLANTS
from jepsen_like.planted.directory_bugs import DIRECTORY_PLANTS
from jepsen_like.planted.local_log_bugs import LOCAL_LOG_PLANTS
from jepsen_like.planted.partition_bugs import PARTITION_PLANTS, PARTITION_SURVIVORS
from jepsen_like.planted.partition_file_bugs import PARTITION_FILE_PLANTS, PARTITION_FILE_SURVIVORS
from jepsen_like.planted.planting import Plants, planted_in
from jepsen_like.planted.setting_bugs import SETTING_PLANTS, SETTING_SURVIVORS

__all__ = ["CLUSTER_PLANTS", "CLUSTER_SCHEDULED", "CLUSTER_SURVIVORS", "planted"]

_ALL: Plants = {
    **CONTROLLER_PLANTS,
    **PARTITION_PLANTS,
    **LOCAL_LOG_PLANTS,
    **SETTING_PLANTS,
    **BOUNDARY_PLANTS,
    **DIRECTORY_PLANTS,
    **PARTITION_FILE_PLANTS,
    **ANSWER_PLANTS,
}
CLUSTER_PLANTS: Plants = {name: plant for name, plant in _ALL.items() if plant.seeds_max}
CLUSTER_SCHEDULED: Plants = {name: plant for name, plant in _ALL.items() if not plant.seeds_max}
CLUSTER_SURVIVORS: Plants = {
    **PARTITION_SURVIVORS,
    **SETTING_SURVIVORS,
    **BOUNDARY_SURVIVORS,
    **PARTITION_FILE_SURVIVORS,
}


@contextmanager
def planted(names: str | None) -> Iterator[None]:
    """Run with the planted bugs `names`; None plants nothing."""
    with ExitStack() as stack:
        for name in names.split(",") if names else ():
            plant = _ALL.get(name) or CLUSTER_SURVIVORS[name]
            stack.enter_context(planted_in(plant))
        yield
