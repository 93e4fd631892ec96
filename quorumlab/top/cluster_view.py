"""A cluster at one time, as `quorumlab top` knows it: plain values, and how they are counted.

Pure. `asking.py` and `log_follower.py` gather these, `screen.py` shows them. None is what nobody
could tell, and is shown as a dash.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import numpy as np

from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from quorumlab.top.two_views import TwoViews
from wire.messages.metadata import MetadataResponse

__all__ = [
    "BrokerSight",
    "ClusterView",
    "ControllerSight",
    "Counted",
    "FaultSight",
    "LogEntry",
    "PartitionSight",
    "Partitions",
    "of_image",
    "of_metadata",
    "rates",
]

LISTED_MAX = 200  # partitions; no screen has more lines


class ControllerSight(NamedTuple):
    id: int
    role: str  # or why it does not answer
    epoch: int | None = None
    lag_records: int | None = None
    lag_ms: int | None = None
    answers: bool = True


class BrokerSight(NamedTuple):
    id: int
    state: str
    requests: float | None = None  # a second
    bytes: float | None = None  # a second
    answers: bool = True


class PartitionSight(NamedTuple):
    name: str
    leader: int | None
    isr: tuple[int, ...]
    replicas: tuple[int, ...]

    @property
    def trouble(self) -> str:
        if self.leader is None:
            return "no leader"
        missing = [broker for broker in self.replicas if broker not in self.isr]
        return f"not in sync: {','.join(map(str, missing))}" if missing else ""


class LogEntry(NamedTuple):
    offset: int
    text: str
    subject: str  # whose story is told on Enter; empty: it has none


class FaultSight(NamedTuple):
    text: str
    seconds: float  # in force


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Those in trouble come first in `listed`, which is cut off; the counts are of all."""

    count: int = 0
    offline: int = 0
    under_replicated: int = 0
    listed: tuple[PartitionSight, ...] = ()
    led: Mapping[int, int] = field(default_factory=dict)  # partitions, by broker
    out_of_isr: Mapping[int, int] = field(default_factory=dict)  # where the broker should be


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    cluster: str = ""
    time: str = ""
    active_controller: int | None = None
    epoch: int | None = None
    controllers: Collection[ControllerSight] = ()
    brokers: Collection[BrokerSight] = ()
    partitions: Partitions | None = None
    log: tuple[LogEntry, ...] = ()  # the oldest first
    log_end: int | None = None
    problem: str = ""  # why there is no log, or no more of it
    note: str = ""  # what the numbers mean here
    views: TwoViews | None = None  # None: nobody asked
    chaos: str | None = None  # the phase of a chaos run; None: there is no run
    faults: tuple[FaultSight, ...] = ()


# --- partitions ------------------------------------------------------------------------------


def of_image(image: MetadataImage) -> Partitions:
    """Counts in columns, so that many partitions take hardly longer than few."""
    table = image.partitions
    offline, behind = table.rows_without_leader(), table.rows_under_replicated()
    healthy = np.arange(min(table.end_row, LISTED_MAX), dtype=np.int32)
    order = dict.fromkeys(np.concatenate([offline, behind, healthy]).tolist())
    rows = np.array(list(order)[:LISTED_MAX], np.int32)
    brokers = sorted(image.brokers)
    return Partitions(
        count=len(table),
        offline=len(offline),
        under_replicated=len(behind),
        listed=tuple(_ordered(_sight(image, *found) for found in table.partitions(rows))),
        led={broker: len(table.rows_led_by(broker)) for broker in brokers},
        out_of_isr={
            broker: len(table.rows_with_replica(broker)) - len(table.rows_with_isr_member(broker))
            for broker in brokers
        },
    )


def _sight(
    image: MetadataImage, topic_id: UUID, index: int, state: PartitionState
) -> PartitionSight:
    topic = image.topic_by_id(topic_id)
    name = topic_id if topic is None else topic.name
    leader = None if state.leader == NO_LEADER else state.leader
    return PartitionSight(f"{name}-{index}", leader, state.isr, state.replicas)


def of_metadata(response: MetadataResponse) -> Partitions:
    """As a broker tells them, where the metadata log cannot be read."""
    sights = [
        PartitionSight(
            f"{topic.name}-{each.partition_index}",
            None if each.leader_id == NO_LEADER else each.leader_id,
            each.isr_nodes,
            each.replica_nodes,
        )
        for topic in response.topics
        for each in topic.partitions
    ]
    missing = (broker for each in sights for broker in {*each.replicas} - {*each.isr})
    return Partitions(
        count=len(sights),
        offline=sum(each.leader is None for each in sights),
        under_replicated=sum(len(each.isr) < len(each.replicas) for each in sights),
        listed=tuple(_ordered(sights)[:LISTED_MAX]),
        led=Counter(each.leader for each in sights if each.leader is not None),
        out_of_isr=Counter(missing),
    )


def _ordered(sights: Iterator[PartitionSight] | list[PartitionSight]) -> list[PartitionSight]:
    """Without a leader, then with the fewest replicas in sync; users' topics before Kafka's own."""

    def urgency(each: PartitionSight) -> tuple[bool, int, bool, str, int]:
        topic, _, index = each.name.rpartition("-")
        short = len(each.replicas) - len(each.isr)
        return each.leader is not None, -short, topic.startswith("__"), topic, int(index)

    return sorted(sights, key=urgency)


# --- rates -----------------------------------------------------------------------------------


class Counted(NamedTuple):
    """Counters of a broker, which grow until it starts anew."""

    seconds: float  # when they were read
    requests: int | None
    bytes: int | None


def rates(before: Counted | None, now: Counted | None) -> tuple[float | None, float | None]:
    """Requests and bytes a second; None without two readings of one life of the broker."""
    if before is None or now is None or now.seconds <= before.seconds:
        return None, None
    took = now.seconds - before.seconds

    def rate(old: int | None, new: int | None) -> float | None:
        return None if old is None or new is None or new < old else (new - old) / took

    return rate(before.requests, now.requests), rate(before.bytes, now.bytes)
