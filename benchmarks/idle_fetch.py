"""Processor time of an incremental fetch that changes nothing: leader's and follower's side.

Two broker cores, on a disk and a network in memory, replicate idle partitions. The leader's figure
is the whole life of one Fetch: it comes in, is parked, expires and is answered. The follower's is
that of one empty answer: it is taken, and the next request is made.

    python -m benchmarks idle-fetch [PARTITIONS ...]
"""

import gc
import sys
import time
from collections.abc import Callable

from benchmarks.figures import percentile, print_figure, progress
from broker.broker import Broker
from quorum.core.effects import Effect, Reply, Request, Response, Send
from tests.broker.brokers import LISTENER, Brokers
from wire.messages.fetching import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)

PARTITIONS = (100, 10_000, 100_000)
LEADER, FOLLOWER = 1, 2
TOPIC_PARTITIONS = 1000
WAIT_MS = 500
UPKEEP_MS = 60_000  # more than any first interval of upkeep
ROUNDS = 200
SECONDS_MAX = 20.0


def main() -> None:
    for count in tuple(map(int, sys.argv[1:])) or PARTITIONS:
        progress(f"idle_fetch: {count:,} partitions")
        cluster = Brokers(2).start()
        for first in range(0, count, TOPIC_PARTITIONS):
            size = min(TOPIC_PARTITIONS, count - first)
            cluster.create_topic(f"idle-{first}", *(((LEADER, FOLLOWER),) * size))
        cluster.run(2 * WAIT_MS)
        measure("idle fetch: leader", leaders_fetch(cluster, count), count)
        measure("idle fetch: follower", followers_fetch(cluster), count)


def measure(name: str, fetch: Callable[[], None], partitions: int) -> None:
    """The median over many fetches, without the collector of garbage: it strikes some of them."""
    fetch()
    gc.collect()
    gc.disable()
    spent: list[float] = []
    began = time.monotonic()
    while len(spent) < ROUNDS and time.monotonic() - began < SECONDS_MAX:
        before = time.process_time()
        fetch()
        spent.append(time.process_time() - before)
    gc.enable()
    value = percentile(spent, 50) * 1e6
    print_figure(name, value, "us", partitions=partitions, fetches=len(spent))


def leaders_fetch(cluster: Brokers, count: int) -> Callable[[], None]:
    """Begin a session of the follower; returns what fetches in it once."""
    broker, now_ms, epoch = cluster.brokers[LEADER], cluster.now_ms, 0
    partitions = tuple(
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in range(min(count, TOPIC_PARTITIONS))
    )
    topics = tuple(
        FetchTopic(topic="", topic_id=topic_id, partitions=partitions)
        for topic_id in cluster.topics.values()
    )
    session_id = 0

    def fetch() -> None:
        nonlocal now_ms, epoch, session_id
        body = FetchRequest(
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=cluster.epochs[FOLLOWER]),
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=10 << 20,
            session_id=session_id,
            session_epoch=epoch,
            topics=topics if epoch == 0 else (),
        )
        broker.receive(Request(token=10**9 + epoch, body=body, listener=LISTENER), now_ms)
        broker.deadline_ms()
        now_ms += WAIT_MS
        broker.tick(now_ms)
        broker.deadline_ms()
        answer = answer_to(10**9 + epoch, broker.take_effects())
        session_id, epoch = answer.session_id, epoch + 1

    for _ in range(3):  # the session begins, and tells what it has to tell
        fetch()
    now_ms += UPKEEP_MS
    while (due_ms := broker.deadline_ms()) is not None and due_ms <= now_ms:
        broker.tick(now_ms)  # the first look for lagging followers and for old records
        broker.take_effects()
        now_ms += 1
    return fetch


def answer_to(token: int, effects: list[Effect]) -> FetchResponse:
    found = [item.body for item in effects if isinstance(item, Reply) and item.token == token]
    assert len(found) == 1, f"{len(found)} answers"
    assert isinstance(found[0], FetchResponse), found
    return found[0]


def followers_fetch(cluster: Brokers) -> Callable[[], None]:
    broker, now_ms = cluster.brokers[FOLLOWER], cluster.now_ms
    cluster.cut.add((FOLLOWER, LEADER))
    cluster.kill(LEADER)
    cluster.settle()
    backoff_ms = cluster.brokers[FOLLOWER].config.replica_fetch_backoff_ms
    sent = next_fetch(broker, now_ms + 2 * backoff_ms)

    def fetch() -> None:
        nonlocal sent
        answer = FetchResponse(session_id=7, responses=())
        broker.receive(Response(token=sent.token, body=answer), now_ms + 2 * backoff_ms)
        broker.deadline_ms()
        sent = next(item for item in broker.take_effects() if is_fetch(item))  # type: ignore[assignment]

    return fetch


def next_fetch(broker: Broker, now_ms: int) -> Send:
    broker.tick(now_ms)
    for effect in broker.take_effects():
        if isinstance(effect, Send) and is_fetch(effect):
            return effect
    raise AssertionError("the follower does not fetch")


def is_fetch(effect: Effect) -> bool:
    return isinstance(effect, Send) and isinstance(effect.body, FetchRequest)
