"""A broker's coordinators, of groups and of transactions, and what they need of each other.

Groups ask whether a transaction goes on before its offsets are written; transactions take producer
ids, and tell leaders how they ended. Both follow the roles of this broker's replicas.
"""

from functools import partial
from typing import TypeAlias

from broker.groups.group_coordinators import (
    GroupCoordinators,
    group_coordinators,
    transaction_ended,
)
from broker.membership.membership import Membership, Timed
from broker.partition.partition import Partition
from broker.requests.producer_ids import ProducerIds
from broker.transactions.markers import Markers
from broker.transactions.transaction_coordinator import (
    TransactionCoordinators,
    transaction_coordinators,
)
from broker.transactions.verification import Verification
from broker.waiting import Deadlines
from controller.metadata.delta import MetadataDelta

__all__ = ["AllCoordinators"]

_Each: TypeAlias = GroupCoordinators | TransactionCoordinators


class AllCoordinators:
    def __init__(self, membership: Membership, deadlines: Deadlines) -> None:
        parts = membership.parts
        config, cluster, outbox = parts.config, parts.cluster, parts.outbox
        self.producer_ids = ProducerIds(
            incarnation=membership.incarnation,
            controller=membership.controller,
            outbox=outbox,
            deadlines=deadlines,
            timeout_ms=config.session_timeout_ms,
        )
        timeout_ms = config.replica_socket_timeout_ms  # of what brokers ask each other
        markers = Markers(cluster=cluster, outbox=outbox, timeout_ms=timeout_ms)
        self.transactions = transaction_coordinators(
            config.transactions,
            cluster=cluster,
            deadlines=deadlines,
            outbox=outbox,
            markers=markers,
            take_id=self.producer_ids.take,
        )
        self.verification = Verification(
            cluster=cluster,
            coordinators=self.transactions,
            outbox=outbox,
            timeout_ms=timeout_ms,
        )
        self.groups = group_coordinators(
            config.groups,
            cluster=cluster,
            deadlines=deadlines,
            outbox=outbox,
            verifier=self.verification,
        )
        self.transaction_ended = partial(transaction_ended, self.groups)
        both: tuple[_Each, ...] = (self.groups, self.transactions)
        self._by_topic = {each.topic: each for each in both}
        self.timed: tuple[Timed, ...] = (self.producer_ids, markers, *both)

    def elected(self, partition: Partition, now_ms: int) -> None:
        """The partition leads a new epoch, here."""
        if partition.topic in self._by_topic:
            self._by_topic[partition.topic].elected(partition, now_ms)

    def lost(self, partition: Partition, now_ms: int) -> None:
        if partition.topic in self._by_topic:
            self._by_topic[partition.topic].lost(partition, now_ms)

    def progressed(self, partition: Partition, now_ms: int) -> None:
        """The end or the high watermark of a led partition has moved."""
        if partition.topic in self._by_topic:
            self._by_topic[partition.topic].progressed(partition, now_ms)

    def obey(self, delta: MetadataDelta, now_ms: int) -> None:
        """A new image is published."""
        for each in self._by_topic.values():
            each.obey(delta, now_ms)
