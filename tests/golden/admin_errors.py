"""What a real Kafka answers to wrong admin requests: error codes and messages.

Every case is sent twice: to the broker listener (some checks are made there
before forwarding) and straight to the controller listener.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.golden.rawkafka import ZERO_UUID, Connection, In, Out

TIMEOUT_MS = 10000
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

Results = list[tuple[str, int, str | None]]


@dataclass(frozen=True)
class Case:
    """One request: what it says in JSON, its bytes, how its answer is read."""

    api: str
    key: int
    version: int
    says: dict[str, object]
    body: Out
    read: Callable[[In], Results]
    # Set for a request that succeeds, and would on the second listener not.
    once: bool = False


def create(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    *,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
    validate_only: bool = False,
    twice: bool = False,
    once: bool = False,
) -> Case:
    says: dict[str, object] = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
    }
    if assignments:
        says["assignments"] = {str(k): v for k, v in assignments.items()}
    if configs:
        says["configs"] = configs
    if validate_only:
        says["validate_only"] = True
    if twice:
        says["same_topic_twice_in_the_request"] = True

    def one(out: Out, topic: str) -> None:
        out.string(topic).i32(partitions).i16(factor)
        out.array(
            list((assignments or {}).items()),
            lambda o, a: o.i32(a[0]).array(a[1], Out.i32).tags(),
        )
        out.array(list((configs or {}).items()), lambda o, c: o.string(c[0]).string(c[1]).tags())
        out.tags()

    body = Out().array([name] * (2 if twice else 1), one)
    body.i32(TIMEOUT_MS).flag(validate_only).tags()
    return Case("CreateTopics", 19, 7, says, body, read_create, once)


def read_create(answer: In) -> Results:
    answer.i32()

    def one(r: In) -> tuple[str, int, str | None]:
        name, _, code, message = r.string() or "", r.uuid(), r.i16(), r.string()
        r.i32()
        r.i16()
        r.array(lambda c: (c.string(), c.string(), c.flag(), c.i8(), c.flag(), c.tags()))
        r.tags()
        return name, code, message

    found = answer.array(one)
    answer.tags()
    answer.end()
    return found


def delete(name: str | None, topic_id: bytes = ZERO_UUID) -> Case:
    says: dict[str, object] = {"name": name, "topic_id": topic_id.hex()}
    body = Out().array([name], lambda o, n: o.string(n).raw(topic_id).tags())
    return Case("DeleteTopics", 20, 6, says, body.i32(TIMEOUT_MS).tags(), read_delete)


def read_delete(answer: In) -> Results:
    answer.i32()

    def one(r: In) -> tuple[str, int, str | None]:
        name, _ = r.string() or "", r.uuid()
        code, message = r.i16(), r.string()
        r.tags()
        return name, code, message

    return answer.array(one)


def partitions(name: str, count: int, assignments: Sequence[list[int]] | None = None) -> Case:
    says: dict[str, object] = {"name": name, "count": count}
    if assignments is not None:
        says["assignments"] = list(assignments)

    def one(out: Out, topic: str) -> None:
        out.string(topic).i32(count)
        out.array(assignments, lambda o, a: o.array(a, Out.i32).tags()).tags()

    body = Out().array([name], one).i32(TIMEOUT_MS).flag(False).tags()
    return Case("CreatePartitions", 37, 3, says, body, read_named)


def read_named(answer: In) -> Results:
    answer.i32()

    def one(r: In) -> tuple[str, int, str | None]:
        found = r.string() or "", r.i16(), r.string()
        r.tags()
        return found

    return answer.array(one)


def configs(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Case:
    says: dict[str, object] = {
        "resource_type": kind,
        "resource_name": name,
        "changes": [{"name": n, "op": op, "value": value} for n, op, value in changes],
    }

    def one(out: Out, resource: str) -> None:
        out.i8(kind).string(resource)
        out.array(changes, lambda o, c: o.string(c[0]).i8(c[1]).string(c[2]).tags()).tags()

    body = Out().array([name], one).flag(False).tags()
    return Case("IncrementalAlterConfigs", 44, 1, says, body, read_configs)


def read_configs(answer: In) -> Results:
    answer.i32()

    def one(r: In) -> tuple[str, int, str | None]:
        code, message = r.i16(), r.string()
        r.i8()
        name = r.string() or ""
        r.tags()
        return name, code, message

    return answer.array(one)


def reassign(name: str, partition: int, replicas: list[int] | None) -> Case:
    says: dict[str, object] = {"name": name, "partition": partition, "replicas": replicas}

    def one(out: Out, topic: str) -> None:
        out.string(topic)
        out.array([partition], lambda o, p: o.i32(p).array(replicas, Out.i32).tags()).tags()

    body = Out().i32(TIMEOUT_MS).array([name], one).tags()
    return Case("AlterPartitionReassignments", 45, 0, says, body, read_reassign)


def read_reassign(answer: In) -> Results:
    answer.i32()
    found: Results = [("(top)", answer.i16(), answer.string())]

    def partition(r: In) -> tuple[int, int, str | None]:
        got = r.i32(), r.i16(), r.string()
        r.tags()
        return got

    def one(r: In) -> None:
        name = r.string()
        found.extend((f"{name}-{p}", code, text) for p, code, text in r.array(partition))
        r.tags()

    answer.array(one)
    return found


def elect(kind: int, name: str, partition: int) -> Case:
    says: dict[str, object] = {"election_type": kind, "topic": name, "partition": partition}
    body = Out().i8(kind)
    body.array([name], lambda o, t: o.string(t).array([partition], Out.i32).tags())
    return Case("ElectLeaders", 43, 2, says, body.i32(TIMEOUT_MS).tags(), read_elect)


def read_elect(answer: In) -> Results:
    answer.i32()
    found: Results = [("(top)", answer.i16(), None)]

    def partition(r: In) -> tuple[int, int, str | None]:
        got = r.i32(), r.i16(), r.string()
        r.tags()
        return got

    def one(r: In) -> None:
        name = r.string()
        found.extend((f"{name}-{p}", code, text) for p, code, text in r.array(partition))
        r.tags()

    answer.array(one)
    return found


def feature(name: str, level: int, upgrade_type: int = 1, version: int = 2) -> Case:
    says: dict[str, object] = {"feature": name, "level": level, "upgrade_type": upgrade_type}
    body = Out().i32(TIMEOUT_MS)
    body.array([name], lambda o, n: o.string(n).i16(level).i8(upgrade_type).tags())
    body.flag(False).tags()

    def read(answer: In) -> Results:
        answer.i32()
        found: Results = [("(top)", answer.i16(), answer.string())]
        if version < 2:
            found += answer.array(lambda r: (r.string() or "", r.i16(), r.string(), r.tags())[:3])
        return found

    return Case("UpdateFeatures", 57, version, says, body, read)


def unregister(broker: int) -> Case:
    body = Out().i32(broker).tags()

    def read(answer: In) -> Results:
        answer.i32()
        return [("(top)", answer.i16(), answer.string())]

    return Case("UnregisterBroker", 64, 0, {"broker_id": broker}, body, read)


def cases() -> list[Case]:
    """All requests, in the order they are sent to each listener."""
    legal = "x" * 249
    bad_retention: dict[str, str | None] = {"retention.ms": "soon"}
    return [
        create("exists", once=True),
        create("a.b", once=True),
        create(legal, validate_only=True),
        create(""),
        create("."),
        create(".."),
        create("x" * 250),
        create("a b"),
        create("a/b"),
        create("\u00e9"),
        create("__cluster_metadata"),
        create("exists"),
        create("exists", validate_only=True),
        create("a_b"),
        create("a_b", factor=0),
        create("exists", partitions=0, configs=bad_retention),
        create("config-and-factor", factor=0, configs=bad_retention),
        create("partitions-and-factor", partitions=0, factor=0),
        create("dup", twice=True),
        create("zero-factor", factor=0),
        create("minus-two-factor", factor=-2),
        create("factor-2", factor=2),
        create("zero-partitions", partitions=0),
        create("minus-two-partitions", partitions=-2),
        create("too-many", partitions=100000),
        create("both", 1, 1, assignments={0: [1]}),
        create("both-partitions", 1, -1, assignments={0: [1]}),
        create("both-factor", -1, 1, assignments={0: [1]}),
        create("gap", -1, -1, assignments={1: [1]}),
        create("unknown-broker", -1, -1, assignments={0: [7]}),
        create("empty-replicas", -1, -1, assignments={0: []}),
        create("twice-a-replica", -1, -1, assignments={0: [1, 1]}),
        create("unequal", -1, -1, assignments={0: [1], 1: [1, 2]}),
        create("unknown-config", configs={"no.such.config": "1"}),
        create("bad-config", configs=bad_retention),
        create("null-config", configs={"retention.ms": None}),
        create("bad-cleanup", configs={"cleanup.policy": "shred"}),
        create("small-segment", configs={"segment.bytes": "10"}),
        create("min-isr-0", configs={"min.insync.replicas": "0"}),
        create("local-retention", configs={"local.retention.ms": "5000"}, validate_only=True),
        create("default-both", -1, -1, validate_only=True),
        delete("unknown"),
        delete(""),
        delete(None, bytes(14) + b"\x01\x02"),
        delete(None),
        delete("exists", bytes(14) + b"\x01\x02"),
        delete("__cluster_metadata"),
        partitions("unknown", 2),
        partitions("exists", 1),
        partitions("exists", 0),
        partitions("exists", -1),
        partitions("a.b", 2, []),
        partitions("a.b", 2, [[7]]),
        partitions("a.b", 2, [[1, 2]]),
        partitions("a.b", 3, [[1]]),
        configs(TOPIC, "unknown", ("retention.ms", SET, "1000")),
        configs(TOPIC, "exists", ("no.such.config", SET, "1")),
        configs(TOPIC, "exists", ("retention.ms", SET, "soon")),
        configs(TOPIC, "exists", ("retention.ms", SET, None)),
        configs(TOPIC, "exists", ("retention.ms", APPEND, "5")),
        configs(TOPIC, "exists", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        configs(TOPIC, "exists", ("cleanup.policy", SUBTRACT, "delete,compact")),
        configs(TOPIC, "", ("retention.ms", SET, "1")),
        configs(BROKER, "7", ("log.retention.ms", SET, "1")),
        configs(BROKER, "seven", ("log.retention.ms", SET, "1")),
        configs(BROKER, "1", ("process.roles", SET, "broker")),
        configs(BROKER, "", ("log.retention.ms", SET, "soon")),
        configs(1, "exists", ("retention.ms", SET, "1")),
        reassign("unknown", 0, [1]),
        reassign("exists", 5, [1]),
        reassign("exists", 0, [7]),
        reassign("exists", 0, []),
        reassign("exists", 0, [1, 1]),
        reassign("exists", 0, None),
        elect(0, "unknown", 0),
        elect(0, "exists", 5),
        elect(0, "exists", 0),
        elect(1, "exists", 0),
        elect(5, "exists", 0),
        feature("no.such.feature", 1),
        feature("metadata.version", 99),
        feature("metadata.version", 29),
        feature("metadata.version", 29, 2),
        feature("metadata.version", 29, 3),
        feature("metadata.version", 6, 2),
        feature("transaction.version", 1, 9),
        feature("group.version", -1),
        feature("kraft.version", 2),
        feature("no.such.feature", 1, version=1),
        unregister(7),
        # Last: the controller takes this for an internal fault and resigns.
        configs(TOPIC, "exists", ("retention.ms", 9, "5")),
    ]


def capture(broker_port: int, controller_port: int) -> list[dict[str, object]]:
    """Send every case to both listeners; one JSON object a case and listener."""
    found: list[dict[str, object]] = []
    for via, port in (("broker", broker_port), ("controller", controller_port)):
        with Connection(port) as connection:
            for case in cases():
                if case.once and via == "controller":
                    continue
                entry: dict[str, object] = {
                    "api": case.api,
                    "version": case.version,
                    "via": via,
                    "request": case.says,
                }
                results = case.read(connection.call(case.key, case.version, case.body))
                entry["results"] = [
                    {"name": name, "error_code": code, "error_message": message}
                    for name, code, message in results
                ]
                found.append(entry)
            wait_for_controller(connection)
    return found


def wait_for_controller(connection: Connection) -> None:
    """Return once an active controller answers again."""
    probe = create("probe", validate_only=True)
    for _ in range(100):
        (result,) = probe.read(connection.call(probe.key, probe.version, probe.body))
        if result[1] == 0:
            return
        time.sleep(0.2)
    raise RuntimeError("no active controller")
