"""The experiments of a comparison, as values: what is done to a cluster, and what its steps are.

Steps are named in their order; those of the nodes are milestones (`node_measurements.STEPS`), the
others are seen from outside. `scenarios` does each experiment to running processes.

Partitions are counted through several topics, laid out by hand. Kafka's controller writes at most
10,000 records for a request, so one topic has 9,000 partitions at most, and more come as several.
The request says where replicas lie: all designs then fail over the same partitions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from controller.milestones import Occasion
from quorumlab.compare.subjects import Subject
from wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from wire.primitives import ZERO_UUID

__all__ = [
    "BROKERS",
    "CONTROLLERS",
    "DATA_MAX",
    "EXPERIMENTS",
    "MATRIX",
    "PER_TOPIC",
    "QUICK",
    "Experiment",
    "Topic",
    "creation",
    "named",
    "place_of",
    "placement",
    "topics_for",
]

BROKERS = 3
DATA_MAX = 10_000  # partitions: with more, brokers hold no data, and no client writes
CONTROLLERS = 3  # of a quorum; on ZooKeeper, brokers are that, too
_FAILOVER = ("detected", "decided", "persisted", "told", "applied", "first write")
PER_TOPIC = 9000


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    name: str
    title: str
    what: str
    steps: Sequence[str]  # in order
    causes: Sequence[str]  # of the milestones that belong to it
    waits: Sequence[str] = ()  # steps that last as long as a setting, or the experiment, says
    needs_controller: bool = False
    needs_zookeeper: bool = False
    zookeepers: int = 1
    holders: Sequence[int] = (1, 2, 3)  # the brokers that partitions lie on at first
    spared: Sequence[int] = ()  # of them, those that lead nothing
    settings: Mapping[str, str] = field(default_factory=dict)
    is_of_defaults: bool = True  # it means something with a design's own time-outs, too
    needs_data: bool = False  # replicas that fetch, or a client
    is_of_improvements: bool = False  # done for these (`improvements`), or if it is named

    def why_not(self, subject: Subject) -> str:
        """Returns why `subject` cannot take part, in one sentence; nothing if it can."""
        if self.needs_zookeeper and not subject.has_zookeeper:
            return f"{subject.name} has no ZooKeeper"
        if self.needs_controller and not subject.has_controller:
            return f"{subject.name} has no controller: replicas elect"
        return ""


EXPERIMENTS: Mapping[str, Experiment] = {
    each.name: each
    for each in (
        Experiment(
            name="broker-crash",
            title="Broker crash",
            what="kill -9 of a broker that leads a third of the partitions",
            steps=_FAILOVER,
            waits=("detected",),
            causes=(Occasion.BROKER_FAILED,),
        ),
        Experiment(
            name="controller-failover",
            title="Controller failover",
            what="kill -9 of the active controller; on ZooKeeper that is a broker, too",
            steps=("detected", "elected", "ready", "first change", "first write"),
            waits=("detected",),
            causes=(Occasion.CONTROLLER_FAILED,),
            needs_controller=True,
        ),
        Experiment(
            name="broker-pause",
            title="Broker pause",
            what="SIGSTOP of a leader past its session, then SIGCONT: a zombie",
            steps=(*_FAILOVER, "resumed", "in sync"),
            needs_data=True,
            waits=("detected", "resumed"),
            causes=(Occasion.BROKER_FAILED,),
        ),
        Experiment(
            name="controlled-shutdown",
            title="Controlled shutdown",
            what="orderly stop of a broker that leads a third of the partitions",
            steps=(*_FAILOVER, "stopped"),
            # The second, where it only ends its session.
            causes=(Occasion.CONTROLLED_SHUTDOWN, Occasion.BROKER_FAILED),
        ),
        Experiment(
            name="topic-creation",
            title="Topic creation",
            what="all partitions at once, until each takes writes and every broker knows",
            causes=(Occasion.TOPIC,),
            steps=(
                "detected",
                "decided",
                "persisted",
                "answered",
                "told",
                "applied",
                "first write",
            ),
        ),
        Experiment(
            name="isr-change",
            title="ISR change",
            what="a follower stands still for longer than it may lag, and catches up",
            steps=("shrunk", "resumed", "grown"),
            needs_data=True,
            waits=("shrunk", "resumed"),
            causes=(Occasion.ISR,),
            spared=(3,),
            settings={
                "replica.lag.time.max.ms": "1000",
                "zookeeper.session.timeout.ms": "10000",
                "broker.session.timeout.ms": "10000",
            },
            is_of_defaults=False,  # there, who lags for too long has lost its session before
        ),
        Experiment(
            name="reassignment",
            title="Reassignment",
            what="one of two replicas of every partition moves to another broker",
            steps=("detected", "decided", "persisted", "answered", "moved"),
            causes=(Occasion.REASSIGNMENT,),
            holders=(1, 2),
            needs_data=True,
        ),
        Experiment(
            name="zookeeper-leader",
            title="ZooKeeper leader",
            what="kill -9 of the leader of three ZooKeepers",
            steps=("first change", "first write"),
            causes=(Occasion.CONTROLLER_FAILED,),
            needs_zookeeper=True,
            zookeepers=3,
            needs_data=True,
        ),
        Experiment(
            name="rolling-restart",
            title="Rolling restart",
            what="every broker in turn: stopped in good order, started, in sync again",
            steps=("done",),
            needs_data=True,
            causes=(Occasion.CONTROLLED_SHUTDOWN, Occasion.BROKER_FAILED),
        ),
        Experiment(
            name="crash-in-a-flood",
            title="Broker crash in a flood",
            what="the same, while another broker is asked for more than it can serve",
            steps=_FAILOVER,
            waits=("detected",),
            causes=(Occasion.BROKER_FAILED,),
            needs_controller=True,
            needs_data=True,
            is_of_improvements=True,
        ),
        Experiment(
            name="broker-bounce",
            title="Broker bounce",
            what="kill -9 of a broker that is back before the controller, which stood still, looks",
            steps=("resumed", "detected", "decided", "persisted", "first write", "in sync"),
            waits=("resumed",),
            causes=(Occasion.BROKER_FAILED,),
            needs_controller=True,
            needs_zookeeper=True,
            needs_data=True,
            settings={"zookeeper.session.timeout.ms": "6000"},
            is_of_defaults=False,  # it takes turns with sessions
            is_of_improvements=True,
        ),
    )
}
MATRIX = tuple(name for name, each in EXPERIMENTS.items() if not each.is_of_improvements)
QUICK = ("broker-crash", "controller-failover")


# --- placement and topics --------------------------------------------------------------------


def placement(experiment: Experiment, partitions: int) -> list[tuple[int, ...]]:
    """The replicas of every partition, the preferred leader first.

    Leaders take turns, and replicas follow in turn behind the leader: the same broker is not always
    the second.
    """
    holders = experiment.holders
    leaders = [each for each in holders if each not in experiment.spared]
    starts = (holders.index(leaders[number % len(leaders)]) for number in range(partitions))
    return [(*holders[at:], *holders[:at]) for at in starts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    first: int  # the number of its partition 0 among all
    placed: Sequence[tuple[int, ...]]  # by partition: its replicas
    id: UUID = ZERO_UUID  # known once it is created


def topics_for(placed: Sequence[tuple[int, ...]]) -> Iterator[Topic]:
    for number, first in enumerate(range(0, len(placed), PER_TOPIC)):
        part = placed[first : first + PER_TOPIC]
        yield Topic(name=f"compared-{number}", first=first, placed=part)


def place_of(topics: Sequence[Topic], partition: int) -> tuple[int, int]:
    """Returns the number of the topic among `topics`, and of the partition in it."""
    number, index = divmod(partition, PER_TOPIC)
    assert index < len(topics[number].placed), (partition, len(topics))
    return number, index


def named(topics: Sequence[Topic], name: str, topic_id: UUID) -> Topic:
    """The one that an answer is about: it has the name or the id, by its version."""
    return next(each for each in topics if name == each.name or topic_id == each.id)


def creation(topic: Topic, timeout_ms: int) -> CreateTopicsRequest:
    placed = tuple(
        CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
        for index, replicas in enumerate(topic.placed)
    )
    return CreateTopicsRequest(
        topics=(CreatableTopic(name=topic.name, assignments=placed),), timeout_ms=timeout_ms
    )
