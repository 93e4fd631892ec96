"""Processor time that the door adds to a Produce or a Fetch, beside what the broker's core takes.

One broker core, on a disk in memory, gets each request as bytes and gives its answer as bytes; no
sockets and no driver, which would only make the door's share smaller. The ACLs name other topics
and users beside those that decide: half of them by prefixes. A cold door has new ACLs, of which it
makes its index first.

    python -m benchmarks authorization [ACLS ...]
"""

import gc
import sys
import time
from collections.abc import Callable, Mapping
from uuid import UUID

from benchmarks.figures import percentile, print_figure, progress
from controller.authorization.acl_index import Resource
from controller.authorization.authorizer import UserRules
from controller.authorization.door import AclDoor, DoorRules
from controller.metadata.image import MetadataImage
from controller.metadata.security import Operation, Pattern
from quorum.core.effects import Request
from tests.broker.brokers import LISTENER, Brokers, batch_of, produce_request
from wire.apis import decode_request, encode_request, encode_response
from wire.messages.fetching import FetchPartition, FetchRequest, FetchTopic
from wire.metadata_records import AccessControlEntryRecord
from wire.security.principals import Principal

ACLS = (0, 1000, 10_000)
TOPIC, USER = "orders", Principal("User", "alice")
PRODUCE, FETCH = (0, 9), (1, 12)  # API key and version
ROUNDS = 2000


def main() -> None:
    cluster = Brokers(1).start()
    cluster.create_topic(TOPIC, (1,))
    cluster.run(1000)
    whole = {
        "produce": round_trip(cluster, produce_request(TOPIC, 0, batch_of(bytes(1000))), *PRODUCE),
        "fetch": round_trip(cluster, fetch_request(), *FETCH),
    }
    for count in tuple(map(int, sys.argv[1:])) or ACLS:
        progress(f"authorization: {count:,} ACLs")
        for name, ask in whole.items():
            measure(cluster, name, ask, entries(count))


def fetch_request() -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchTopic(topic=TOPIC, partitions=(part,))
    return FetchRequest(max_wait_ms=0, max_bytes=1000, topics=(topic,))


def round_trip(cluster: Brokers, body: object, key: int, version: int) -> Callable[[], object]:
    frame = b"".join(encode_request(body, version, 1, "benchmark"))

    def ask() -> object:
        asked = decode_request(frame)
        answer = cluster.call(1, asked.body)
        return encode_response(answer, key, version, 1) and asked.body

    return ask


def entries(count: int) -> Mapping[UUID, AccessControlEntryRecord]:
    """READ and WRITE of the topic for its user, and `count` that are about something else."""
    acls = [entry(operation, TOPIC, str(USER)) for operation in (Operation.READ, Operation.WRITE)]
    for number in range(count):
        pattern = Pattern.PREFIXED if number % 2 else Pattern.LITERAL
        acls.append(entry(Operation.ALL, f"other-{number}", f"User:{number}", pattern))
    return {UUID(int=number): acl for number, acl in enumerate(acls)}


def entry(
    operation: Operation, topic: str, user: str, pattern: Pattern = Pattern.LITERAL
) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=UUID(int=0),
        resource_type=Resource.TOPIC,
        resource_name=topic,
        pattern_type=pattern,
        principal=user,
        host="*",
        operation=operation,
        permission_type=3,
    )


def measure(
    cluster: Brokers,
    name: str,
    ask: Callable[[], object],
    acls: Mapping[UUID, AccessControlEntryRecord],
) -> None:
    image: MetadataImage = cluster.brokers[1].cluster.image._replace(acls=acls)
    door = AclDoor(DoorRules(users=UserRules()), lambda: image)
    request = Request(
        token=1, body=ask(), listener=LISTENER, principal=USER, client_host="10.0.0.1"
    )

    def admit() -> None:
        assert isinstance(door.admit(request, is_control=False), Request), "it may"

    cold_us = median_us(admit, rounds=1)
    whole_us, door_us = median_us(ask), median_us(admit)
    about = {"acls": len(acls), "requests": ROUNDS}
    print_figure(f"authorization: {name} without a door", whole_us, "us", **about)
    print_figure(f"authorization: {name} at the door", door_us, "us", **about)
    print_figure(f"authorization: {name} at a cold door", cold_us, "us", acls=len(acls))
    print_figure(f"authorization: {name} share", 100 * door_us / whole_us, "%", **about)


def median_us(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    gc.collect()
    gc.disable()
    spent: list[float] = []
    for _ in range(rounds):
        before = time.perf_counter()
        run()
        spent.append(time.perf_counter() - before)
    gc.enable()
    return percentile(spent, 50) * 1e6
