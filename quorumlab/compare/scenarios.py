"""How each experiment is done to a cluster of processes, and when it is over.

A scenario begins on a calm cluster, with a client that writes to every partition. It ends when
every partition takes records again, or when the experiment says so. Its outcome is a trial.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from jepsen_like.real.kafka_client import refusal
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.zookeeper import ZooKeeper
from quorumlab.compare.experiments import Topic
from quorumlab.compare.flood import Flood
from quorumlab.compare.node_measurements import Counts
from quorumlab.compare.stage import Stage, beside
from quorumlab.compare.subjects import silence_ms
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)

__all__ = ["SCENARIOS", "Trial"]

_ANEW = "created-anew"
_FLOOD_SECONDS = 1.0  # until there is a backlog
_LOOK_SECONDS = 0.1
_PAST_SESSION_SECONDS = 1.0
_TARGET = 3  # of reassignments: the broker that had nothing


@dataclass(slots=True, kw_only=True)
class Trial:
    """A fault (or a change), what it concerns, and what was seen of its end from outside."""

    fault_ns: int  # when, by time.monotonic_ns()
    before: Mapping[int, Counts]  # the ledger just before, by node
    affected: Sequence[int]  # partitions that have to move to another leader
    counted: int  # partitions that milestones must have counted
    failed_nodes: Collection[int] = ()  # nodes: if they live, nobody waits for what they apply
    restarted: Collection[int] = ()
    seen: dict[str, float] = field(default_factory=dict)  # by step: ms since the fault

    def sees(self, step: str) -> None:
        """It is done now."""
        self.seen[step] = round((time.monotonic_ns() - self.fault_ns) / 1e6, 1)


# --- failures of brokers ------------------------------------------------------------------


def _broker_crash(stage: Stage, random: Random) -> Trial:
    victim, trial = _strike_broker(stage, random)
    stage.kill(victim)
    stage.wait_served()
    return trial


def _broker_pause(stage: Stage, random: Random) -> Trial:
    victim, trial = _strike_broker(stage, random)
    stage.cluster.pause(victim)
    try:
        stage.wait_served()
        stage.pass_time(_PAST_SESSION_SECONDS, "others lead")
    finally:
        stage.cluster.resume(victim)
    trial.sees("resumed")
    _wait_isr(stage, 3, "in sync again")
    trial.sees("in sync")
    return trial


def _crash_in_a_flood(stage: Stage, random: Random) -> Trial:
    """Floods the broker that is neither the victim nor the controller: both keep their pace."""
    _begin(stage)
    victim, flooded, *_ = _serving_only(stage, random)
    with Flood(stage.cluster.layout.node(flooded).port):
        stage.pass_time(_FLOOD_SECONDS, "a flood begins")
        trial = _failing(stage, victim, stage.led_by(victim))
        stage.kill(victim)
        stage.wait_applied()
    stage.wait_served()
    return trial


def _broker_bounce(stage: Stage, random: Random) -> Trial:
    """The broker's old session ends, and its new one begins, while the controller stands still for
    less than a session."""
    _begin(stage)
    victim, *_ = _serving_only(stage, random)
    controller = _active_controller(stage)
    assert controller is not None, stage.experiment
    session_seconds = silence_ms(stage.subject, stage.experiment.settings) / 1000
    trial = _failing(stage, victim, stage.led_by(victim))
    stage.kill(victim)
    stage.cluster.start(victim)
    stage.pass_time(0.6 * session_seconds, "the old session lasts")
    stage.cluster.pause(controller)
    try:
        stage.pass_time(0.6 * session_seconds, "the old session ends, and the new one begins")
    finally:
        stage.cluster.resume(controller)
    trial.sees("resumed")
    stage.wait_served()  # until then, what is known of the ISR is of before
    stage.distrusted = ()
    _wait_isr(stage, len(stage.experiment.holders), "in sync again")
    trial.sees("in sync")
    return trial


def _controlled_shutdown(stage: Stage, random: Random) -> Trial:
    victim, trial = _strike_broker(stage, random)

    def stop() -> None:
        stage.stop(victim)
        trial.sees("stopped")

    stopping = beside(stop)
    stage.wait_served()
    stage.wait(stopping.done, f"broker {victim} has not stopped")
    stopping.result()
    return trial


def _rolling_restart(stage: Stage, random: Random) -> Trial:
    _begin(stage)
    trial = _marked(stage)
    trial.restarted = [node.id for node in stage.cluster.layout.brokers]
    for node_id in trial.restarted:
        stage.distrusted = (node_id,)
        stage.patiently(partial(stage.stop, node_id), f"broker {node_id} has not stopped")
        stage.cluster.start(node_id)
        stage.cluster.wait_ready(stage.patience_seconds, (node_id,), progress=stage.check)
        _wait_isr(stage, 3, f"broker {node_id} in sync again")
    trial.sees("done")
    return trial


# --- failures of who decides --------------------------------------------------------------


def _controller_failover(stage: Stage, random: Random) -> Trial:
    _begin(stage)
    victim = _active_controller(stage)
    assert victim is not None, stage.experiment
    trial = _failing(stage, victim, stage.led_by(victim))  # on ZooKeeper, it is a broker
    stage.kill(victim)
    _change_anew(stage, trial)
    return trial


def _zookeeper_leader(stage: Stage, random: Random) -> Trial:
    _begin(stage)
    zookeeper = stage.cluster.zookeeper
    assert zookeeper is not None, stage.experiment
    leader = stage.wait(lambda: _leader_of(zookeeper), "no ZooKeeper leads", _LOOK_SECONDS)
    trial = _marked(stage)
    assert leader is not None, zookeeper
    zookeeper.kill(leader)
    _change_anew(stage, trial)
    return trial


def _leader_of(zookeeper: ZooKeeper) -> int | None:
    return next((each.id for each in zookeeper.servers if zookeeper.role(each) == "leader"), None)


def _change_anew(stage: Stage, trial: Trial) -> None:
    """Waits until metadata can be changed, a new topic has a leader, and all partitions take
    records."""
    stage.wait(lambda: stage.try_to_create(_ANEW), "no topic can be created", _LOOK_SECONDS / 4)

    def is_led() -> bool:
        return any(each.leader_id >= 0 for each in stage.described((_ANEW,)))

    stage.wait(is_led, "the new topic has no leader", _LOOK_SECONDS / 4)
    trial.sees("first change")
    stage.wait_served()


# --- changes ------------------------------------------------------------------------------


def _topic_creation(stage: Stage, random: Random) -> Trial:
    trial = _marked(stage, affected=range(stage.partitions), counted=stage.partitions)
    stage.create_topics()
    trial.sees("answered")
    stage.begin_serving()
    return trial


def _isr_change(stage: Stage, random: Random) -> Trial:
    _begin(stage)
    (follower,) = stage.experiment.spared
    trial = _marked(stage, counted=stage.partitions)
    stage.distrusted = (follower,)
    stage.cluster.pause(follower)
    try:
        _wait_isr(stage, 2, "out of every ISR", but_led_by=follower)
        trial.sees("shrunk")
    finally:
        stage.cluster.resume(follower)
    trial.sees("resumed")
    _wait_isr(stage, 3, "in every ISR again")
    trial.sees("grown")
    return trial


def _reassignment(stage: Stage, random: Random) -> Trial:
    _begin(stage)
    trial = _marked(stage, counted=stage.partitions)
    for topic in stage.topics:
        _reassign(stage, topic)
    trial.sees("answered")

    def has_moved() -> bool:
        described = list(stage.described())
        return len(described) == stage.partitions and all(
            set(each.isr_nodes) == set(each.replica_nodes) == {each.replica_nodes[0], _TARGET}
            for each in described
        )

    stage.wait(has_moved, "replicas on the move", _look_seconds(stage))
    trial.sees("moved")
    return trial


def _reassign(stage: Stage, topic: Topic) -> None:
    moved = tuple(
        ReassignablePartition(partition_index=index, replicas=(replicas[0], _TARGET))
        for index, replicas in enumerate(topic.placed)
    )
    asked = (ReassignableTopic(name=topic.name, partitions=moved),)
    request = AlterPartitionReassignmentsRequest(topics=asked)
    what = f"reassigning {topic.name}"
    answer = stage.ask(request, AlterPartitionReassignmentsResponse, what)
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


# --- what scenarios share -----------------------------------------------------------------


def _begin(stage: Stage) -> None:
    stage.create_topics()
    stage.begin_serving()
    stage.calm()


def _strike_broker(stage: Stage, random: Random) -> tuple[int, Trial]:
    """Chooses a broker that is not the controller, once all has begun. Where replicas elect, one
    broker may lead everything: then it is the one that leads most nearly its share."""
    _begin(stage)
    able = _serving_only(stage, random)
    led = {broker: stage.led_by(broker) for broker in able}
    share = stage.partitions / len(stage.brokers)
    victim = min(able, key=lambda broker: abs(len(led[broker]) - share))
    return victim, _failing(stage, victim, led[victim])


def _serving_only(stage: Stage, random: Random) -> list[int]:
    """Returns the brokers that are not the controller, in random order."""
    active = _active_controller(stage)
    able = [node.id for node in stage.brokers if node.id != active]
    random.shuffle(able)
    return able


def _active_controller(stage: Stage) -> int | None:
    """Returns None if the design has none."""
    if not stage.subject.has_controller:
        return None
    return stage.wait(stage.active_controller, "no active controller", _LOOK_SECONDS)


def _failing(stage: Stage, victim: int, affected: Sequence[int]) -> Trial:
    """The fault happens now to `victim`, and concerns what it leads."""
    return _marked(
        stage, failed_nodes=(victim,), affected=affected, counted=stage.counted(affected)
    )


def _marked(
    stage: Stage,
    *,
    failed_nodes: Sequence[int] = (),
    affected: Sequence[int] = (),
    counted: int = 0,
) -> Trial:
    before = stage.counts()
    fault_ns = stage.mark(failed_nodes=failed_nodes, affected=affected)
    return Trial(
        fault_ns=fault_ns,
        before=before,
        affected=affected,
        counted=counted,
        failed_nodes=failed_nodes,
    )


def _look_seconds(stage: Stage) -> float:
    """Returns the pause between two looks at all metadata: each costs the cluster something."""
    return max(_LOOK_SECONDS, stage.partitions / 5000)


def _wait_isr(stage: Stage, size: int, what: str, but_led_by: int = -1) -> None:
    """Waits for every partition; where replicas elect, a spared broker may lead some."""

    def has_size() -> bool:
        described = list(stage.described())
        return len(described) == stage.partitions and all(
            len(each.isr_nodes) == size or each.leader_id == but_led_by for each in described
        )

    stage.wait(has_size, f"not yet {what}", _look_seconds(stage))


SCENARIOS: Mapping[str, Callable[[Stage, Random], Trial]] = {
    "broker-bounce": _broker_bounce,
    "broker-crash": _broker_crash,
    "broker-pause": _broker_pause,
    "controlled-shutdown": _controlled_shutdown,
    "controller-failover": _controller_failover,
    "crash-in-a-flood": _crash_in_a_flood,
    "isr-change": _isr_change,
    "reassignment": _reassignment,
    "rolling-restart": _rolling_restart,
    "topic-creation": _topic_creation,
    "zookeeper-leader": _zookeeper_leader,
}
