"""Planted bugs of what brokers tell their clients of the metadata.

A broker prepares most of an answer once, and drops what a change concerns: each bug keeps what one
kind of change concerns.
"""

from dataclasses import replace

from broker.requests.views import Views
from controller.metadata.delta import MetadataDelta
from controller.metadata.partitions import NO_ROWS
from jepsen_like.planted.planting import Plants, plant_in

__all__ = ["ANSWER_PLANTS"]

ANSWER_PLANTS: Plants = {}

# What a plant calls of the rule that it replaces.
_forget = Views.forget


@plant_in(
    ANSWER_PLANTS,
    "a Metadata answer says which replicas cannot be reached now",
    holder=Views,
    name="forget",
    seeds_max=10,
)
def answers_as_if_no_broker_had_changed(self: Views, delta: MetadataDelta) -> None:
    _forget(self, replace(delta, brokers_changed=()))


@plant_in(
    ANSWER_PLANTS,
    "a Metadata answer has the newest state of each partition",
    holder=Views,
    name="forget",
    seeds_max=10,
)
def answers_as_if_no_partition_had_changed(self: Views, delta: MetadataDelta) -> None:
    _forget(self, replace(delta, rows_changed=NO_ROWS))
