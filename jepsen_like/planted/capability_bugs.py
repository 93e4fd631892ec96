"""Planted bugs of what brokers tell clients of older software."""

from broker.groups import offsets
from jepsen_like.planted.planting import Plants, plant_in
from wire.capabilities import NOTHING_LACKING, Lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import OffsetFetchRequestGroup, OffsetFetchResponseGroup

__all__ = ["CAPABILITY_PLANTS"]

CAPABILITY_PLANTS: Plants = {}

# What a plant calls of the rule that it replaces.
_refused_fetch = offsets.refused_fetch


@plant_in(
    CAPABILITY_PLANTS,
    "a client that takes no error of a group is told it of each partition",
    holder=offsets,
    name="refused_fetch",
    seeds_max=150,
)
def tells_errors_in_new_words(
    asked: OffsetFetchRequestGroup, error: ErrorCode, lacking: Lacking
) -> OffsetFetchResponseGroup:
    return _refused_fetch(asked, error, NOTHING_LACKING)
