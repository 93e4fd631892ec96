"""How each experiment is done to a cluster of processes, and when it is over.

An act begins on a cluster in calm, with a client that writes to every partition. It ends when every
partition takes records again, or when the experiment says so. What is seen from outside is told in
milliseconds since the fault.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

from jepsen_like.real.kafka_client import Client, refusal
from jepsen_like.real.layout import ClusterError
from quorumlab.compare.ledger import Counts
from quorumlab.compare.stage import Stage
from quorumlab.compare.topics import Topic
from wire.errors import ErrorCode
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)

__all__ = ["ACTS", "Done"]

_ANEW = "created-anew"
_LOOK_SECONDS = 0.1
_PAST_SESSION_SECONDS = 1.0
_TARGET = 3  # of reassignments: the broker that had nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    fault_ns: int
    before: Mapping[int, Counts]  # the ledger when it began
    affected: Sequence[int] = ()  # partitions that have to move to another leader
    counted: int = 0  # partitions that milestones must have counted
    restarted: Collection[int] = ()
    seen: Mapping[str, float] = field(default_factory=dict)


class _Seen:
    """Moments since the fault, as they come."""

    def __init__(self, fault_ns: int) -> None:
        self.fault_ns = fault_ns
        self.ms: dict[str, float] = {}

    def now(self, name: str) -> None:
        self.ms[name] = round((time.monotonic_ns() - self.fault_ns) / 1e6, 1)


# --- failures of brokers ------------------------------------------------------------------


def _broker_crash(stage: Stage, random: Random) -> Done:
    victim, affected, before = _prepare(stage, random)
    fault_ns = stage.mark(struck=(victim,), affected=affected)
    stage.kill(victim)
    stage.wait_served()
    return Done(fault_ns=fault_ns, before=before, affected=affected, counted=len(affected))


def _broker_pause(stage: Stage, random: Random) -> Done:
    victim, affected, before = _prepare(stage, random)
    fault_ns = stage.mark(struck=(victim,), affected=affected)
    seen = _Seen(fault_ns)
    stage.cluster.pause(victim)
    try:
        stage.wait_served()
        _pass(stage, _PAST_SESSION_SECONDS, "others lead")
    finally:
        stage.cluster.resume(victim)
    seen.now("resumed")
    _wait_isr(stage, 3, "in sync again")
    seen.now("in sync")
    return Done(
        fault_ns=fault_ns, before=before, affected=affected, counted=len(affected), seen=seen.ms
    )


def _controlled_shutdown(stage: Stage, random: Random) -> Done:
    victim, affected, before = _prepare(stage, random)
    fault_ns = stage.mark(struck=(victim,), affected=affected)
    seen = _Seen(fault_ns)

    def stop() -> None:
        stage.stop(victim)
        seen.now("stopped")

    with ThreadPoolExecutor(1) as beside:
        stopping = beside.submit(stop)
        stage.wait_served()
        stopping.result()
    return Done(
        fault_ns=fault_ns, before=before, affected=affected, counted=len(affected), seen=seen.ms
    )


def _rolling_restart(stage: Stage, random: Random) -> Done:
    _begin(stage)
    before = stage.counts()
    fault_ns = stage.mark()
    seen = _Seen(fault_ns)
    nodes = [node.id for node in stage.cluster.layout.brokers]
    for node_id in nodes:
        stage.stop(node_id)
        stage.cluster.start(node_id)
        stage.cluster.wait_ready(stage.left_seconds, (node_id,), progress=stage.check)
        _wait_isr(stage, 3, f"broker {node_id} in sync again")
    seen.now("done")
    return Done(fault_ns=fault_ns, before=before, restarted=nodes, seen=seen.ms)


# --- failures of who decides --------------------------------------------------------------


def _controller_failover(stage: Stage, random: Random) -> Done:
    _begin(stage)
    stage.wait(lambda: stage.active_controller() is not None, "no controller", _LOOK_SECONDS)
    victim = stage.active_controller()
    assert victim is not None, stage.experiment
    affected = stage.led_by(victim)  # on ZooKeeper, where it is a broker
    before = stage.counts()
    fault_ns = stage.mark(struck=(victim,), affected=affected)
    seen = _Seen(fault_ns)
    stage.kill(victim)
    _change_anew(stage, seen)
    return Done(
        fault_ns=fault_ns, before=before, affected=affected, counted=len(affected), seen=seen.ms
    )


def _zookeeper_leader(stage: Stage, random: Random) -> Done:
    _begin(stage)
    zookeeper = stage.cluster.zookeeper
    assert zookeeper is not None, stage.experiment
    leader = next(each.id for each in zookeeper.servers if zookeeper.role(each) == "leader")
    before = stage.counts()
    fault_ns = stage.mark()
    seen = _Seen(fault_ns)
    zookeeper.kill(leader)
    _change_anew(stage, seen)
    return Done(fault_ns=fault_ns, before=before, seen=seen.ms)


def _change_anew(stage: Stage, seen: _Seen) -> None:
    """Until metadata can be changed, a topic gets a leader, and every partition takes records."""
    stage.wait(lambda: stage.try_to_create(_ANEW), "no topic can be created", _LOOK_SECONDS / 4)

    def is_led() -> bool:
        return any(each.leader_id >= 0 for each in stage.described((_ANEW,)))

    stage.wait(is_led, "the new topic has no leader", _LOOK_SECONDS / 4)
    seen.now("first change")
    stage.wait_served()


# --- changes ------------------------------------------------------------------------------


def _topic_creation(stage: Stage, random: Random) -> Done:
    before = stage.counts()
    fault_ns = stage.mark(affected=range(stage.partitions))
    seen = _Seen(fault_ns)
    stage.create_topics()
    seen.now("answered")
    stage.begin_serving()
    return Done(
        fault_ns=fault_ns,
        before=before,
        affected=range(stage.partitions),
        counted=stage.partitions,
        seen=seen.ms,
    )


def _isr_change(stage: Stage, random: Random) -> Done:
    _begin(stage)
    (follower,) = stage.experiment.spared
    before = stage.counts()
    fault_ns = stage.mark()
    seen = _Seen(fault_ns)
    stage.cluster.pause(follower)
    try:
        _wait_isr(stage, 2, "out of every ISR", but_led_by=follower)
        seen.now("shrunk")
    finally:
        stage.cluster.resume(follower)
    seen.now("resumed")
    _wait_isr(stage, 3, "in every ISR again")
    seen.now("grown")
    return Done(fault_ns=fault_ns, before=before, counted=stage.partitions, seen=seen.ms)


def _reassignment(stage: Stage, random: Random) -> Done:
    _begin(stage)
    before = stage.counts()
    fault_ns = stage.mark()
    seen = _Seen(fault_ns)
    address = [(node.host, node.port) for node in stage.brokers]
    with Client(address, timeout_seconds=stage.left_seconds) as client:
        for topic in stage.topics:
            _reassign(client, topic)
    seen.now("answered")

    def has_moved() -> bool:
        described = list(stage.described())
        return len(described) == stage.partitions and all(
            set(each.isr_nodes) == set(each.replica_nodes) == {each.replica_nodes[0], _TARGET}
            for each in described
        )

    stage.wait(has_moved, "replicas on the move", _look_seconds(stage))
    seen.now("moved")
    return Done(fault_ns=fault_ns, before=before, counted=stage.partitions, seen=seen.ms)


def _reassign(client: Client, topic: Topic) -> None:
    moved = tuple(
        ReassignablePartition(partition_index=index, replicas=(replicas[0], _TARGET))
        for index, replicas in enumerate(topic.placed)
    )
    asked = (ReassignableTopic(name=topic.name, partitions=moved),)
    request = AlterPartitionReassignmentsRequest(topics=asked)
    answer = client.ask(request, AlterPartitionReassignmentsResponse)
    refused = [
        each
        for told in answer.responses
        for each in told.partitions
        if each.error_code is not ErrorCode.NONE
    ]
    if answer.error_code is not ErrorCode.NONE:
        raise ClusterError(f"no reassignment: {refusal(answer.error_code, answer.error_message)}")
    if refused:
        why = refusal(refused[0].error_code, refused[0].error_message)
        raise ClusterError(f"{len(refused)} partitions are not reassigned: {why}")


# --- what acts share ----------------------------------------------------------------------


def _begin(stage: Stage) -> None:
    stage.create_topics()
    stage.begin_serving()
    stage.calm()


def _prepare(stage: Stage, random: Random) -> tuple[int, list[int], Mapping[int, Counts]]:
    """A broker that is not the controller, what it leads, and the ledger so far."""
    _begin(stage)
    active = stage.active_controller()
    victim = random.choice([node.id for node in stage.brokers if node.id != active])
    affected = stage.led_by(victim)
    return victim, affected, stage.counts()


def _pass(stage: Stage, seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    stage.wait(lambda: time.monotonic() > until, what)


def _look_seconds(stage: Stage) -> float:
    """Between two looks at all metadata: every one costs the cluster something."""
    return max(_LOOK_SECONDS, stage.partitions / 5000)


def _wait_isr(stage: Stage, size: int, what: str, but_led_by: int = -1) -> None:
    """Of every partition; where replicas elect, one may lead that should have been spared."""

    def has_size() -> bool:
        described = list(stage.described())
        return len(described) == stage.partitions and all(
            len(each.isr_nodes) == size or each.leader_id == but_led_by for each in described
        )

    stage.wait(has_size, f"not yet {what}", _look_seconds(stage))


ACTS: Mapping[str, Callable[[Stage, Random], Done]] = {
    "broker-crash": _broker_crash,
    "broker-pause": _broker_pause,
    "controlled-shutdown": _controlled_shutdown,
    "controller-failover": _controller_failover,
    "isr-change": _isr_change,
    "reassignment": _reassignment,
    "rolling-restart": _rolling_restart,
    "topic-creation": _topic_creation,
    "zookeeper-leader": _zookeeper_leader,
}
