"""Planted bugs of the view that a broker has of a partition's log: where it starts and ends."""

from broker.partition.local_log import LocalLog
from jepsen_like.planted.planting import Plants, plant_in

__all__ = ["LOCAL_LOG_PLANTS"]

LOCAL_LOG_PLANTS: Plants = {}

_trim = LocalLog.trim  # what a plant calls of the rule that it replaces


@plant_in(
    LOCAL_LOG_PLANTS,
    "an epoch that wrote nothing is forgotten by who follows again",
    holder=LocalLog,
    name="forget_empty_epochs",
)
def remembers_empty_epochs(self: LocalLog) -> None:
    return


@plant_in(
    LOCAL_LOG_PLANTS,
    "what lies behind the offset that was asked for is not deleted (KIP-107)",
    holder=LocalLog,
    name="trim",
    seeds_max=40,
)
def deletes_all_that_is_exposed(self: LocalLog, start_offset: int) -> None:
    _trim(self, self.high_watermark if start_offset > self.start_offset else start_offset)


@plant_in(
    LOCAL_LOG_PLANTS,
    "nothing is deleted that is not exposed (KIP-107)",
    holder=LocalLog,
    name="trim",
    seeds_max=40,
)
def deletes_what_is_not_exposed(self: LocalLog, start_offset: int) -> None:
    if self.start_offset < start_offset == self.high_watermark:
        self.high_watermark = start_offset = self.end_offset
    _trim(self, start_offset)


@plant_in(
    LOCAL_LOG_PLANTS,
    "nobody is told how far a log reaches that is being cut or begun anew",
    holder=LocalLog,
    name="is_rewriting",
    is_property=True,
    seeds_max=20,
)
def tells_before_it_is_rewritten(self: LocalLog) -> bool:
    return False
