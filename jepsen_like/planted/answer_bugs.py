"""Planted bugs of what brokers answer to their clients.

A broker prepares most of a Metadata answer once, and drops what a change concerns: two bugs keep
what one kind of change concerns. The third forgets that a client has older software.
"""

from dataclasses import replace

from broker.groups import offsets
from broker.requests.views import Views
from controller.metadata.delta import MetadataDelta
from controller.metadata.partitions import NO_ROWS
from jepsen_like.planted.planting import Plants, plant_in
from wire.capabilities import NOTHING_LACKING, Lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import OffsetFetchRequestGroup, OffsetFetchResponseGroup

__all__ = ["ANSWER_PLANTS"]

ANSWER_PLANTS: Plants = {}

# Each plant calls the rule that it replaces.
_forget = Views.forget
_refused_fetch = offsets.refused_fetch


@plant_in(ANSWER_PLANTS, Views, "forget", seeds_max=10)
def answers_as_if_no_broker_had_changed(self: Views, delta: MetadataDelta) -> None:
    """Breaks: a Metadata answer says which replicas cannot be reached now."""
    _forget(self, replace(delta, brokers_changed=()))


@plant_in(ANSWER_PLANTS, Views, "forget", seeds_max=10)
def answers_as_if_no_partition_had_changed(self: Views, delta: MetadataDelta) -> None:
    """Breaks: a Metadata answer has the newest state of each partition."""
    _forget(self, replace(delta, rows_changed=NO_ROWS))


@plant_in(ANSWER_PLANTS, offsets, "refused_fetch", seeds_max=150)
def tells_errors_in_new_words(
    asked: OffsetFetchRequestGroup, error: ErrorCode, lacking: Lacking
) -> OffsetFetchResponseGroup:
    """Breaks: a client that takes no error of a group is told it of each partition."""
    return _refused_fetch(asked, error, NOTHING_LACKING)
