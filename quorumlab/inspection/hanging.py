"""Transactions that hang: open in a partition for longer than any may be, and what ends them.

Consumers that read committed records wait before the first record of an open transaction. Its
coordinator ends one in time, so that an old one is either unknown to it, and then nobody ever ends
it, or its coordinator does not do its work. Leaders know what is open in their partitions,
coordinators what is going on.

Source: KIP-664; Kafka's TransactionsCommand (find-hanging).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from broker.transactions.transaction import places_by_topic
from broker.verifying import Place
from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.entries import time_text
from quorumlab.inspection.facts import Finding, Level
from quorumlab.inspection.live import client_of
from quorumlab.inspection.target import Address
from wire.errors import ErrorCode
from wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.messages.transactions import (
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

__all__ = [
    "Cluster",
    "OpenTransaction",
    "cluster_of",
    "find_hanging",
    "hanging",
    "old_transactions",
]

TIMEOUT_KEY = "transaction.max.timeout.ms"
TIMEOUT_MAX_MS = 900_000  # its default
_BROKER = 4  # a resource type
_PARTITIONS_AT_ONCE = 500

Ask = Callable[[Address, Any, type], Any]  # Raises ClusterError


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    topic: str
    partition: int
    producer_id: int
    first_offset: int
    last_ms: int  # when its last record was written
    known_as: tuple[str, str] | None = None  # transactional id and state, as its coordinator says


class Cluster(NamedTuple):
    brokers: Mapping[int, Address]
    led: Mapping[int, Sequence[Place]]  # partitions by leader


def find_hanging(address: Address) -> list[Finding]:
    """None of an address that is no broker's: who does not answer is told elsewhere."""
    now_ms = int(time.time() * 1000)
    try:
        cluster = cluster_of(address, _ask)
    except ClusterError:
        return []
    try:
        limit_ms, found = old_transactions(cluster, _ask, now_ms)
    except ClusterError as error:
        text = f"it cannot be told whether transactions hang: {error}"
        return [Finding(Level.WARNING, text, "ask again when all brokers are up")]
    return list(hanging(found, limit_ms=limit_ms, now_ms=now_ms))


def hanging(found: Sequence[OpenTransaction], *, limit_ms: int, now_ms: int) -> Iterator[Finding]:
    """`found` are those that are older than the limit."""
    for each in found:
        where = f"{each.topic}-{each.partition}, from offset {each.first_offset} on"
        age = f"its last record is {(now_ms - each.last_ms) // 60_000} min old"
        at = f"({time_text(each.last_ms)})"
        text = f"producer {each.producer_id} has a transaction open in {where}; {age} {at}"
        if each.known_as is None:
            yield Finding(
                Level.PROBLEM,
                f"{text}, and no coordinator knows of it",
                "consumers of committed records wait there. Once its producer is surely gone:"
                f" `kafka-transactions.sh abort --topic {each.topic} --partition {each.partition}"
                f" --start-offset {each.first_offset}`",
            )
        else:
            name, state = each.known_as
            yield Finding(
                Level.WARNING,
                f"{text}; its coordinator knows it as {name}, in state {state}, and should have"
                f" ended it after {limit_ms // 60_000} min",
                "look at the broker that leads the partition of __transaction_state",
            )


# --- asking -----------------------------------------------------------------------------------


def _ask(address: Address, request: Any, expected: type) -> Any:
    with client_of(address) as client:
        return client.ask(request, expected)


def cluster_of(address: Address, ask: Ask) -> Cluster:
    """Raises ClusterError if it is no broker's."""
    answer = ask(address, MetadataRequest(allow_auto_topic_creation=False), MetadataResponse)
    brokers = {
        each.node_id: replace(address, host=each.host, port=each.port) for each in answer.brokers
    }
    led: dict[int, list[Place]] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            if topic.name is not None and row.leader_id in brokers:
                led.setdefault(row.leader_id, []).append((topic.name, row.partition_index))
    return Cluster(brokers, led)


def old_transactions(
    cluster: Cluster, ask: Ask, now_ms: int
) -> tuple[int, tuple[OpenTransaction, ...]]:
    """The limit, and what has been open for longer. Raises ClusterError.

    Coordinators are asked only where there is such a transaction. What its coordinator knows is as
    old as the coordinator says: the times of records are those that producers give them.
    """
    found = [each for leader in cluster.led for each in _open_at(leader, cluster, ask)]
    limit_ms = _limit_ms(cluster, ask) if found else TIMEOUT_MAX_MS
    old = [each for each in found if now_ms - each.last_ms > limit_ms]
    known = _known({each.producer_id for each in old}, cluster, ask) if old else {}
    found = []
    for each in old:
        told = known.get((each.producer_id, (each.topic, each.partition)))
        if told is None:
            found.append(each)
        elif now_ms - told.transaction_start_time_ms > limit_ms:
            named = told.transactional_id, told.transaction_state
            found.append(replace(each, known_as=named))
    return limit_ms, tuple(found)


def _open_at(leader: int, cluster: Cluster, ask: Ask) -> Iterator[OpenTransaction]:
    places = cluster.led[leader]
    for start in range(0, len(places), _PARTITIONS_AT_ONCE):
        topics = places_by_topic(places[start : start + _PARTITIONS_AT_ONCE])
        asked = DescribeProducersRequest(
            topics=tuple(
                DescribeProducersTopic(name=name, partition_indexes=tuple(indexes))
                for name, indexes in topics.items()
            )
        )
        answer = ask(cluster.brokers[leader], asked, DescribeProducersResponse)
        for topic in answer.topics:
            for row in topic.partitions:
                for each in row.active_producers:
                    if each.current_txn_start_offset >= 0:
                        yield OpenTransaction(
                            topic=topic.name,
                            partition=row.partition_index,
                            producer_id=each.producer_id,
                            first_offset=each.current_txn_start_offset,
                            last_ms=each.last_timestamp,
                        )


def _limit_ms(cluster: Cluster, ask: Ask) -> int:
    """As one of the brokers is configured, if it says so."""
    broker = min(cluster.brokers)
    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(broker), configuration_keys=(TIMEOUT_KEY,)
    )
    asked = DescribeConfigsRequest(resources=(resource,))
    answer = ask(cluster.brokers[broker], asked, DescribeConfigsResponse)
    values = [config.value for result in answer.results for config in result.configs]
    return max((int(value) for value in values if value), default=TIMEOUT_MAX_MS)


def _known(
    producer_ids: set[int], cluster: Cluster, ask: Ask
) -> dict[tuple[int, Place], DescribedTransaction]:
    """By producer and partition: the transaction that some coordinator has there.

    Raises ClusterError if a coordinator cannot say.
    """
    found: dict[tuple[int, Place], DescribedTransaction] = {}
    listing = ListTransactionsRequest(producer_id_filters=tuple(sorted(producer_ids)))
    for broker in cluster.brokers.values():
        listed = ask(broker, listing, ListTransactionsResponse)
        _check(broker, listed.error_code)
        ids = tuple(each.transactional_id for each in listed.transaction_states)
        if not ids:
            continue
        asked = DescribeTransactionsRequest(transactional_ids=ids)
        for each in ask(broker, asked, DescribeTransactionsResponse).transaction_states:
            if each.error_code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:  # over by now
                _check(broker, each.error_code)
            for topic in each.topics:
                for index in topic.partitions:
                    found[each.producer_id, (topic.topic, index)] = each
    return found


def _check(broker: Address, error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        raise ClusterError(f"the coordinator at {broker} answers {error.name}")
