"""Groups in which the coordinator assigns (KIP-848), judged on what their members are answered.

G-OWN   a partition is given to a member only if no other member of the group has it: it was never
        given to that one, or that one has said that it has given it back, or is no member any more
G-MEM   no commit is accepted from who is no member, neither when it came nor when it was answered
D-GRP   what a coordinator serves from its beginning on holds the commits that were acknowledged in
        an earlier leader epoch: the last one, or one that may have come after it

A coordinator that is deposed may answer for a while; what it says is not judged once a later one
has answered. Excused is a group whose offsets partition has lost its ISR.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from broker.broker import Broker
from broker.groups.consumer.consumer_values import LEAVES
from broker.groups.coordinator import Coordinator
from broker.groups.offsets_topic import OFFSETS_TOPIC
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Watched
from jepsen_like.sim.assemblies.cluster.nodes import BrokerOf
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Event, Request
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    AssignedPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedPartitions,
)
from wire.messages.group_offsets import OffsetCommitRequest, OffsetCommitResponse

__all__ = ["ConsumerInvariants", "SentCommit"]

Place = tuple[str, int]
_Told = tuple[AssignedPartitions, ...] | tuple[OwnedPartitions, ...]


@dataclass(slots=True, eq=False)
class SentCommit:
    """An offset that a member wants to be kept."""

    group: str
    place: Place
    offset: int
    sent_at: int  # events
    answered_at: int | None = None
    epoch: int | None = None  # of the coordinator, at most, if it is acknowledged


@dataclass(slots=True)
class _Group:
    newest: int = -1  # leader epoch of a coordinator that has answered
    owned: dict[str, frozenset[int]] = field(default_factory=dict)  # by member, as far as known


class ConsumerInvariants(Observer):
    """Raises `Violation`."""

    received_kinds = (ConsumerGroupHeartbeatRequest, OffsetCommitRequest)

    def __init__(
        self,
        broker_of: BrokerOf,
        partitions: PartitionInvariants,
        moment: Callable[[], int],
        fired: Callable[[str], None],
    ) -> None:
        self._broker_of = broker_of
        self._partitions = partitions
        self._moment = moment
        self._fired = fired
        self._groups: dict[str, _Group] = {}
        self._commits: dict[tuple[str, Place], list[SentCommit]] = {}
        self._served: dict[int, Coordinator] = {}  # by node: the last one seen
        self._serving_before: dict[int, tuple[Coordinator, ...]] = {}
        self._strangers: set[tuple[int, int]] = set()  # by node and token: who is no member

    def _watched(self) -> Watched | None:
        """The partition of the offsets, unless nothing is promised any more."""
        watched = self._partitions.named(f"{OFFSETS_TOPIC}-0")
        return None if watched is None or watched.excused else watched

    def named(self, indexes: frozenset[int]) -> tuple[OwnedPartitions, ...]:
        """These partitions of the topic, as a heartbeat names them."""
        for (topic_id, _), watched in self._partitions.watched.items():
            if indexes and watched.name.startswith(f"{TOPIC}-"):
                return (OwnedPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes))),)
        return ()

    # --- owners -----------------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        assert isinstance(event, Request), event
        body = event.body
        if isinstance(body, ConsumerGroupHeartbeatRequest):
            self._has_given_back(body)
            return
        assert isinstance(body, OffsetCommitRequest), body
        self._strangers.discard((host.node_id, event.token))
        if self._is_stranger(host, body):
            self._strangers.add((host.node_id, event.token))

    def _has_given_back(self, body: ConsumerGroupHeartbeatRequest) -> None:
        """That is so whatever comes of the request, and whoever may be asked: a coordinator that is
        deposed refuses it, and may have it in its log."""
        owned = self._groups.setdefault(body.group_id, _Group()).owned
        if body.topic_partitions is not None and body.member_id in owned:
            owned[body.member_id] &= _indexes(body.topic_partitions)

    def _is_stranger(self, host: Host, body: OffsetCommitRequest) -> bool:
        """Is the group one of those judged here, and who commits no member of it?"""
        coordinator = self._coordinator(host, body.group_id)
        known = None if coordinator is None else coordinator.consumers.groups.get(body.group_id)
        return known is not None and body.member_id not in known.members

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        match request, response:
            case (
                ConsumerGroupHeartbeatRequest(),
                ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NONE),
            ):
                self._has_answered(host, request, response)
            case OffsetCommitRequest(), OffsetCommitResponse(topics=(told, *_)):
                was_stranger = (host.node_id, token) in self._strangers
                self._strangers.discard((host.node_id, token))
                is_accepted = told.partitions[0].error_code is ErrorCode.NONE
                if is_accepted and was_stranger and self._is_stranger(host, request):
                    raise Violation(
                        "G-MEM",
                        f"{request.group_id}: {host.node_id} accepts a commit of"
                        f" {request.member_id}, who is no member",
                    )

    def _coordinator(self, host: Host, group_id: str) -> Coordinator | None:
        """That serves the group, and has been there since this turn began."""
        broker = self._broker_of(host)
        found = None if broker is None else broker.coordinators.find(group_id)
        is_known = found in self._serving_before.get(host.node_id, ())
        return found if isinstance(found, Coordinator) and is_known else None

    def _has_answered(
        self,
        host: Host,
        request: ConsumerGroupHeartbeatRequest,
        response: ConsumerGroupHeartbeatResponse,
    ) -> None:
        found = self._coordinator(host, request.group_id)
        group = self._groups.setdefault(request.group_id, _Group())
        if found is None or found.leader_epoch < group.newest:
            return
        group.newest = found.leader_epoch
        known = found.consumers.groups.get(request.group_id)
        members = {} if known is None else known.members
        group.owned = {each: owned for each, owned in group.owned.items() if each in members}
        if request.member_epoch <= LEAVES:
            group.owned.pop(request.member_id, None)
            return
        owned = group.owned.get(request.member_id, frozenset())
        if response.assignment is not None:
            given = _indexes(response.assignment.topic_partitions)
            self._check_free(request, given, group)
            owned |= given
            self._fired("partitions_assigned")
        group.owned[request.member_id] = owned

    def _check_free(
        self, request: ConsumerGroupHeartbeatRequest, given: frozenset[int], group: _Group
    ) -> None:
        for member, owned in group.owned.items():
            if member != request.member_id and owned & given and self._watched() is not None:
                raise Violation(
                    "G-OWN",
                    f"{request.group_id}: {sorted(given)} is given to {request.member_id}, and"
                    f" {member} has {sorted(owned)}",
                )

    # --- commits ----------------------------------------------------------------------------

    def sends(self, group: str, place: Place, offset: int) -> SentCommit:
        sent = SentCommit(group, place, offset, sent_at=self._moment())
        self._commits.setdefault((group, place), []).append(sent)
        return sent

    def is_answered(self, sent: SentCommit, error: ErrorCode) -> None:
        sent.answered_at = self._moment()
        watched = self._watched()
        if error is ErrorCode.NONE and watched is not None and watched.state is not None:
            sent.epoch = watched.state.leader_epoch
            self._fired("consumer_committed")

    def settled_broker(self, host: Host, broker: Broker) -> None:
        self._serving_before[host.node_id] = tuple(broker.coordinators)
        for coordinator in broker.coordinators:
            is_new = self._served.get(host.node_id) is not coordinator
            if coordinator.error is ErrorCode.NONE and is_new:
                self._served[host.node_id] = coordinator
                if self._watched() is not None:
                    self._has_loaded(host, coordinator)

    def _has_loaded(self, host: Host, coordinator: Coordinator) -> None:
        for (group, place), commits in self._commits.items():
            known = coordinator.offsets.committed.get(group, {}).get(place)
            offset = None if known is None else known.offset
            kept = next((each for each in commits if each.offset == offset), None)
            for each in commits:
                is_promised = each.epoch is not None and each.epoch < coordinator.leader_epoch
                if is_promised and (kept is None or _is_before(kept, each)):
                    raise Violation(
                        "D-GRP",
                        f"{group} committed {each.offset} of {place} before epoch"
                        f" {coordinator.leader_epoch}, whose coordinator on {host.node_id} knows"
                        f" {offset}",
                    )


def _is_before(one: SentCommit, other: SentCommit) -> bool:
    """It was over when the other was sent."""
    return one.answered_at is not None and one.answered_at < other.sent_at


def _indexes(told: _Told) -> frozenset[int]:
    """There is one topic."""
    return frozenset(index for each in told for index in each.partitions)
