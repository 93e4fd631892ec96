"""Invariants of brokers that are judged by what a broker asks for in its turns.

D-RET   what retention lets go of was exposed, and goes by the limits of the topic: by those alone
D-MSG   a leader appends no batch that is larger than max.message.bytes
D-LAG   a leader proposes to remove from the ISR each member that has lagged for longer than
        replica.lag.time.max.ms, for which it looks twice in that time, and no other member
D-TEL   no replica tells others where its log ends while that log is being truncated or begun anew:
        a follower does not fetch, and nobody leads
M-CLN   a broker whose processes have all stopped in order since the last one that opened a log
        registers with the epoch of that one

Each class raises `Violation`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from broker.broker import Broker
from broker.partition import isr
from broker.partition.isr import Committed, FollowerProgress, PendingShrink
from broker.partition.partition import FollowerOf, LeaderOf, Partition
from controller.metadata.configs import topic_value
from jepsen_like.sim.assemblies.cluster.invariants.metadata_answers import ImagesOfTurn
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.nodes import BrokerOf
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import (
    Append,
    DeleteLog,
    Effect,
    OpenLog,
    ResetLog,
    Retain,
    Send,
    Stop,
    Truncate,
)
from quorum.core.storage import METADATA_LOG
from quorum.log.files import checkpoints
from wire.batch import read_header
from wire.messages.fetching import FetchRequest
from wire.messages.registration import BrokerRegistrationRequest

__all__ = [
    "BrokerJudge",
    "BrokerTurns",
    "CleanStops",
    "LaggingMembers",
    "SettingInvariants",
    "ToldEnds",
]

_LATE_MS = 5  # of a timer
_SIZE = "max.message.bytes"


class BrokerJudge(Protocol):
    """It judges a broker when a turn of it has ended."""

    def settled_broker(self, host: Host, broker: Broker) -> None: ...


class BrokerTurns(Observer):
    """Has the turns of brokers judged, and no turn of another node."""

    def __init__(self, broker_of: BrokerOf, judges: Iterable[BrokerJudge]) -> None:
        self._broker_of = broker_of
        self._judge_each = [judge.settled_broker for judge in judges]

    def settled(self, host: Host, effects: list[Effect]) -> None:
        broker = self._broker_of(host)
        if broker is not None:
            for judge in self._judge_each:
                judge(host, broker)


class SettingInvariants(Observer):
    """D-RET, D-MSG. Any setting counts that has held since the turn began.

    That a node shows committed metadata is M-UNC.
    """

    performing_kinds = (Append, Retain)

    def __init__(
        self,
        broker_of: BrokerOf,
        images: ImagesOfTurn,
        partitions: PartitionInvariants,
        fired: Callable[[str], None],
    ) -> None:
        self._broker_of = broker_of
        self._images = images
        self._partitions = partitions
        self._fired = fired

    def _settings(self, host: Host, broker: Broker, topic: str, *keys: str) -> set[tuple[int, ...]]:
        """What they have been in this turn."""
        images = {id(image): image for image in self._images.of(host, broker)}
        return {
            tuple(int(topic_value(image, topic, key)) for key in keys) for image in images.values()
        }

    def performing(self, host: Host, effect: Effect) -> None:
        broker = self._broker_of(host)
        if broker is None or not isinstance(effect, Append | Retain) or effect.log == METADATA_LOG:
            return
        partition = _hosted(broker, effect.log)
        if partition is None:
            return
        if isinstance(effect, Retain):
            self._goes_by_its_limits(host, broker, partition, effect)
            self._lets_go(host, partition, effect)
        elif isinstance(partition.role, LeaderOf):
            self._is_not_too_large(host, broker, partition, effect)

    def _goes_by_its_limits(
        self, host: Host, broker: Broker, partition: Partition, effect: Retain
    ) -> None:
        asked = (
            -1 if effect.since_ms is None else host.now_ms - effect.since_ms,
            -1 if effect.bytes_max is None else effect.bytes_max,
        )
        topic = partition.topic
        limits = self._settings(host, broker, topic, "retention.ms", "retention.bytes")
        if asked not in limits:
            raise Violation(
                "D-RET",
                f"{partition.name} of {host.node_id}: (ms, bytes) are {limits}, and it goes by"
                f" {asked}",
            )

    def _lets_go(self, host: Host, partition: Partition, effect: Retain) -> None:
        high_watermark = partition.open_log.high_watermark
        if effect.end_offset > high_watermark:
            raise Violation(
                "D-RET",
                f"{partition.name} of {host.node_id}: records up to {effect.end_offset} may go,"
                f" exposed are those up to {high_watermark}",
            )
        stored = host.disk.log(effect.log)
        start_offset = stored.retained_from(effect)
        if start_offset > stored.written.start_offset:
            self._fired("retained")
            watched = self._partitions.watched[(partition.topic_id, partition.index)]
            watched.deletable.retained(start_offset)

    def _is_not_too_large(
        self, host: Host, broker: Broker, partition: Partition, effect: Append
    ) -> None:
        header, role = read_header(effect.records), partition.role
        assert isinstance(role, LeaderOf)
        if header.leader_epoch != role.leader_epoch:
            return  # fetched as a follower, and written in the turn in which it came to lead
        size = header.size_bytes
        if size <= int(topic_value(broker.cluster.image, partition.topic, _SIZE)):
            return
        sizes = self._settings(host, broker, partition.topic, _SIZE)
        if size > max(sizes)[0]:
            raise Violation("D-MSG", f"{partition.name}: a batch of {size} bytes, not {sizes}")


def _hosted(broker: Broker, log: str) -> Partition | None:
    found = (each for each in broker.replicas if each.name == log and each.log is not None)
    return next(found, None)


class _Lag(NamedTuple):
    """Since when in one leadership members have lagged for too long, with nobody asked."""

    role: LeaderOf
    since_ms: Mapping[int, int]  # by member


class LaggingMembers(Observer):
    """D-LAG: followers that fetch, and are too slow.

    A member that no longer fetches at all is fenced before long, and leaves the ISR by that: only
    one that lives and lags needs its leader to notice.
    """

    def __init__(self) -> None:
        self._lags: dict[tuple[int, Partition], _Lag] = {}
        self._shrinks: dict[tuple[int, Partition], PendingShrink] = {}  # those that were judged

    def started(self, host: Host) -> None:
        self._lags = {place: lag for place, lag in self._lags.items() if place[0] != host.node_id}
        self._shrinks = {
            place: shrink for place, shrink in self._shrinks.items() if place[0] != host.node_id
        }

    def settled_broker(self, host: Host, broker: Broker) -> None:
        if not len(broker.leaders):
            return
        lag_ms, now_ms = broker.config.replica_lag_time_max_ms, host.turn_ms
        for partition in broker.replicas:
            role = partition.role
            if not isinstance(role, LeaderOf):
                continue
            place = (host.node_id, partition)
            if isinstance(role.isr, PendingShrink):
                self._leaves_no_other(place, role, role.isr, now_ms, lag_ms)
            lagging = _lagging(partition, role, now_ms, lag_ms)
            if not lagging:
                self._lags.pop(place, None)
                continue
            lag = self._lags.get(place)
            before = lag.since_ms if lag is not None and lag.role is role else {}
            since_ms = {member: before.get(member, now_ms) for member in lagging}
            self._lags[place] = _Lag(role, since_ms)
            waits_ms = now_ms - min(since_ms.values())
            if waits_ms > lag_ms // 2 + _LATE_MS:
                raise Violation(
                    "D-LAG",
                    f"{partition.name}: {lagging} lag, and {host.node_id} has not asked for"
                    f" {waits_ms} ms: {role}",
                )

    def _leaves_no_other(
        self,
        place: tuple[int, Partition],
        role: LeaderOf,
        shrink: PendingShrink,
        now_ms: int,
        lag_ms: int,
    ) -> None:
        """Judged when the turn ends in which a change was asked for, and by the times alone."""
        if self._shrinks.get(place) is shrink:
            return
        self._shrinks[place] = shrink
        for member in shrink.leaving:
            follower = role.followers.get(member)
            if follower is not None and _is_within(follower, now_ms, lag_ms):
                raise Violation(
                    "D-LAG",
                    f"{place[1].name}: {member} is to leave the ISR at {now_ms} ms, and may lag"
                    f" for {lag_ms} ms: {follower}",
                )


def _is_within(follower: FollowerProgress, now_ms: int, lag_ms: int) -> bool:
    """Has it not lagged for too long, by what it had fetched before this turn?

    What it fetches in the turn itself, the leader may have learned after it had asked.
    """
    fetched_ms = follower.last_fetch_ms if follower.clock is None else now_ms
    return fetched_ms < now_ms and now_ms - follower.last_caught_up_ms <= lag_ms


def _lagging(partition: Partition, role: LeaderOf, now_ms: int, lag_ms: int) -> list[int]:
    """The members that should leave, if nothing has been asked for."""
    if not isinstance(role.isr, Committed):
        return []
    end_offset = partition.open_log.end_offset
    return [
        member
        for member in role.isr.members
        if (follower := role.followers.get(member)) is not None
        and not isr.is_caught_up(
            follower, leader_end_offset=end_offset, now_ms=now_ms, lag_time_max_ms=lag_ms
        )
    ]


class ToldEnds(Observer):
    """D-TEL. A batch that is appended meanwhile waits, and goes with a process that dies."""

    performing_kinds = (FetchRequest, Truncate, ResetLog)

    def __init__(self, broker_of: BrokerOf) -> None:
        self._broker_of = broker_of
        self._begun: dict[int, dict[str, None]] = {}  # by node: logs that may still be rewritten

    def performing(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, Truncate | ResetLog):
            self._begun.setdefault(host.node_id, {})[effect.log] = None
            return
        broker = self._broker_of(host)
        if broker is None or not isinstance(effect, Send):
            return
        rewritten = self._rewritten(host)
        if not rewritten:
            return
        request = effect.body
        assert isinstance(request, FetchRequest), request
        asked = {
            (topic.topic_id, partition.partition)
            for topic in request.topics
            for partition in topic.partitions
        }
        for partition in broker.replicas:
            is_asked = (partition.topic_id, partition.index) in asked
            if is_asked and isinstance(partition.role, FollowerOf):
                rewriting = rewritten.get(partition.name)
                if rewriting is not None:
                    raise _told(host, partition.name, "fetches", rewriting)

    def settled_broker(self, host: Host, broker: Broker) -> None:
        for name, effect in self._rewritten(host).items():
            partition = broker.replicas.of_log(name)
            if partition is not None and isinstance(partition.role, LeaderOf):
                raise _told(host, name, "leads", effect)

    def _rewritten(self, host: Host) -> dict[str, Effect]:
        """The logs that are being truncated or begun anew, with the first such effect of each."""
        begun = self._begun.get(host.node_id)
        if not begun:
            return {}
        found = {name: effect for name in begun if (effect := _rewriting(host, name)) is not None}
        self._begun[host.node_id] = dict.fromkeys(found)
        return found


def _rewriting(host: Host, name: str) -> Effect | None:
    """The first effect that the disk has not carried out yet, of those that rewrite this log."""
    stored = host.disk.logs.get(name)
    waiting = () if stored is None else stored.waiting
    effects = (each.effect for each in waiting)
    return next((each for each in effects if isinstance(each, Truncate | ResetLog)), None)


def _told(host: Host, name: str, tells: str, effect: Effect) -> Violation:
    return Violation("D-TEL", f"{name}: {host.node_id} {tells} during {effect}")


class CleanStops(Observer):
    """M-CLN: the mark of an orderly stop on each broker's disk (KIP-966).

    The controller takes any other epoch for a log that may be shorter than it was. If that replica
    is the last one of an ISR, its next election is an unclean one, though every stop was orderly:

    1. Broker 1 is the last of the ISR. It stops in order, and its mark names its epoch.
    2. It starts while no controller can be reached, and is stopped in order before it has
       registered.
    3. If that stop wrote its own epoch, -1, over the mark, broker 1 registers as unclean next.

    Models when `quorum.log.files.log_directory` takes a mark away.
    """

    performing_kinds = (OpenLog, DeleteLog, Stop, BrokerRegistrationRequest)

    def __init__(self, broker_of: BrokerOf) -> None:
        self._broker_of = broker_of
        # By broker id.
        self._marks: dict[int, int] = {}
        self._clean: dict[int, int] = {}  # the epoch of the last process that opened a log
        self._expected: dict[int, int] = {}  # of the process that runs

    def starts(self, broker_id: int) -> int:
        """The epoch that a process finds on its disk, -1 for none."""
        self._expected[broker_id] = self._clean.get(broker_id, -1)
        return self._marks.get(broker_id, -1)

    def wiped(self, broker_id: int) -> None:
        self._marks.pop(broker_id, None)
        self._clean.pop(broker_id, None)

    def performing(self, host: Host, effect: Effect) -> None:
        broker, node = self._broker_of(host), host.node_id
        if broker is None:
            return
        known = _known_epoch(broker)
        match effect:
            case OpenLog() | DeleteLog():
                self.wiped(node)
            case Stop(exit_code=0):
                before = self._marks.get(node)
                self._marks[node] = checkpoints.clean_shutdown_epoch(before, broker.broker_epoch)
                if known >= 0:
                    self._clean[node] = known
            case Send(body=BrokerRegistrationRequest(previous_broker_epoch=previous)) if known < 0:
                if previous != self._expected[node]:
                    raise Violation(
                        "M-CLN",
                        f"broker {node} registers after epoch {previous}, not"
                        f" {self._expected[node]}",
                    )


def _known_epoch(broker: Broker) -> int:
    """The epoch that this process has, if it can know it: from an answer, or from the metadata,
    which may tell first."""
    own, incarnation = broker.cluster.own_registration, broker.membership.incarnation
    is_published = own is not None and own.incarnation_id == incarnation.id
    return own.epoch if own is not None and is_published else incarnation.registered_epoch
