"""Workloads on what a metadata quorum keeps: registers, partition epochs, a set of topics.

`register`: a topic's config is written, and read in two ways. `read` asks the active controller,
which confirms by a majority that it still leads before it answers with what is committed: that read
is linearizable. `read-stale` asks one broker with an ordinary DescribeConfigs. The answer may be
old, but it was committed once, and it never grows older in the eyes of one process. A key is a
topic. Source: Ongaro's thesis 6.4 (ReadIndex); etcd's robustness tests.

`cas-register`: registers in the log of the quorum alone. A compare-and-set that finds another value
fails, with the extra {"seen": value}. Source: Jepsen's linearizable register.

`partition-epoch`: the partition epoch as a compare-and-set register. A write asks the controller,
as a partition's leader would by AlterPartition, to change the ISR if the partition epoch is still
the one that was looked up before. An acknowledged write made a new partition epoch, its `version`:
no two writes may have made the same one, and a write that began after another had ended made a
later one. The cluster changes ISRs by itself, too, so that versions have gaps. Source: KIP-497.

`set`: its elements are topics, created once, deleted, and listed from every node. While faults come
and go, a list from one node is `read-stale`: it may be old, yet it holds nothing that nobody asked
for. At the very end every node is asked for a `read`, which must have all that was added and not
removed, and nothing that was removed. Source: Jepsen's set workload.

All values are ints (or names) that are written once; a register is None before any write.
"""

from itertools import count
from random import Random

from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.workloads.workload import (
    DrawnWorkload,
    NewTopic,
    Wish,
    Workload,
    WorkloadOptions,
    mixed,
)

__all__ = ["CONFIG", "PREFIX", "cas_register", "partition_epoch", "register", "topic_set"]

CONFIG = "delete.retention.ms"  # takes any int, and means nothing without compaction
PREFIX = "element-"  # of the names of elements; a cluster may have other topics
_REGISTERS = 4
_REGISTER_WEIGHTS = {"write": 40, "read": 40, "read-stale": 20}
_CAS_KEYS = ("x", "y", "z")
_CAS_WEIGHTS = {"read": 40, "write": 20, "cas": 40}
_ISR_TOPIC = "isr"
_ISR_PARTITIONS = 2  # few, so that many writers want the same one
_SET_WEIGHTS = {"add": 40, "remove": 25, "read-stale": 35}
# Pauses, in pauses of the log workload.
_THROUGH_QUORUM = 2  # every write goes through the quorum
_CAS = 3  # many operations on one object make a long search
_SET = 10  # a topic is directories and files on its replicas


def register(options: WorkloadOptions) -> Workload:
    keys = [f"register-{number}" for number in range(_REGISTERS)]
    replicas = options.replication_factor
    values = count(1)

    def draw(process: int, random: Random) -> Wish:
        key, f = random.choice(keys), mixed(random, _REGISTER_WEIGHTS)
        if f == "write":
            return Wish(f="write", value=[key, next(values)])
        if f == "read" and not options.stale_reads_as_reads:
            return Wish(f="read", value=[key, None])
        # One process always asks the same broker: another one may be further behind.
        broker = options.brokers[process % len(options.brokers)]
        claimed = "read" if options.stale_reads_as_reads else "read-stale"
        return Wish(f=claimed, value=[key, None], extra={"node": broker})

    return DrawnWorkload(
        name="register",
        options=options,
        pauses=_THROUGH_QUORUM,
        draw=draw,
        final=lambda process: [Wish(f="read", value=[key, None]) for key in keys],
        topics=[NewTopic(name=key, partitions=1, replication_factor=replicas) for key in keys],
    )


def cas_register(options: WorkloadOptions) -> Workload:
    values = count(1)
    seen: dict[str, Value] = {}  # the last value of each key that anybody was told

    def draw(process: int, random: Random) -> Wish:
        key = random.choice(_CAS_KEYS)
        match mixed(random, _CAS_WEIGHTS):
            case "write":
                return Wish(f="write", value=[key, next(values)])
            case "cas":
                return Wish(f="cas", value=[key, [seen.get(key), next(values)]])
            case _:
                return Wish(f="read", value=[key, None])

    def completed(op: Op) -> None:
        match op:
            case (
                Op(kind=Kind.OK, f="cas", value=[key, [_, value]])
                | Op(kind=Kind.OK, f="read" | "write", value=[key, value])
                | Op(kind=Kind.FAIL, f="cas", value=[key, _], extra={"seen": value})
            ):
                seen[key] = value

    return DrawnWorkload(
        name="cas-register",
        options=options,
        pauses=_CAS,
        draw=draw,
        completed=completed,
        final=lambda process: [Wish(f="read", value=[key, None]) for key in _CAS_KEYS],
    )


def partition_epoch(options: WorkloadOptions) -> Workload:
    values = count(1)
    topic = NewTopic(
        name=_ISR_TOPIC,
        partitions=_ISR_PARTITIONS,
        replication_factor=options.replication_factor,
    )

    def draw(process: int, random: Random) -> Wish:
        key = f"{_ISR_TOPIC}-{random.randrange(_ISR_PARTITIONS)}"
        return Wish(f="write", value=[key, next(values)])

    return DrawnWorkload(
        name="partition-epoch",
        options=options,
        pauses=_THROUGH_QUORUM,
        draw=draw,
        topics=[topic],
    )


def topic_set(options: WorkloadOptions) -> Workload:
    nodes = [*options.brokers, *options.controllers]
    numbers = count(1)
    present: list[str] = []  # elements that are surely there, and that nobody removes yet

    def draw(process: int, random: Random) -> Wish:
        f = mixed(random, _SET_WEIGHTS)
        if f == "remove" and present:
            return Wish(f="remove", value=present.pop(random.randrange(len(present))))
        if f == "read-stale":
            return Wish(f="read-stale", extra={"node": random.choice(nodes)})
        return Wish(f="add", value=f"{PREFIX}{next(numbers)}")

    def completed(op: Op) -> None:
        removed_nothing = op.f == "remove" and op.kind is Kind.FAIL
        if removed_nothing or (op.f == "add" and op.kind is Kind.OK):
            present.append(op.value)

    def final(process: int) -> list[Wish]:
        own = nodes[process % options.processes :: options.processes]
        return [Wish(f="read", extra={"node": node}) for node in own]

    return DrawnWorkload(
        name="set", options=options, pauses=_SET, draw=draw, completed=completed, final=final
    )
