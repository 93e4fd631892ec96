"""Groups: the offsets that they commit, and their members, judged on the answers of coordinators.

D-GRP   what a coordinator serves from its beginning on holds every commit that was acknowledged in
        an earlier leader epoch; and whoever asks the broker that acknowledged a commit is shown the
        commit or told an error, in words that its software knows
G-ONE   in one generation of a group, each piece of work is given to one member
G-GEN   a coordinator hands out generations that only grow, and none that is older than one that
        was assigned; the leader of a group is told a newer one
G-COM   no commit and no heartbeat is accepted from an older generation than one that was handed out
        before it came, from a member that was not told its generation, or from one that has left

Commits of a coordinator's own epoch are in it anyway, and of a later one it may be deposed without
knowing: coordinators are ordered by the epochs in which they lead. A deposed one continues to
answer, and may count generations that no other will know.

- An assigned generation (SyncGroup) is committed, so every later coordinator must know it.
- A generation that was only handed out (JoinGroup) may be lost with its coordinator.

An answer is judged only if one coordinator has served since the turn began: only then is it known
whose answer it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.broker import Broker
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
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from wire.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = ["PLACE", "Commit", "GroupInvariants", "MembershipInvariants", "pieces_of"]

PLACE = (TOPIC, 0)  # of which all groups commit an offset


class Commit(NamedTuple):
    """A broker has acknowledged this offset to a group."""

    group: str
    offset: int
    broker: int


class GroupInvariants:
    """Raises `Violation`."""

    def __init__(self, partitions: PartitionInvariants, fired: Callable[[str], None]) -> None:
        self.commits: list[Commit] = []  # all that were acknowledged
        self._partitions = partitions
        self._fired = fired
        self._acknowledged: dict[int, dict[str, int]] = {}  # by leader epoch
        self._served: dict[int, Coordinator] = {}  # by node: the last one seen

    @property
    def may_be_lost(self) -> bool:
        """What was committed need not be there any more."""
        watched = self._watched()
        return watched is None or bool(watched.excused)

    def _watched(self) -> Watched | None:
        """The partition of the offsets."""
        return self._partitions.named(f"{OFFSETS_TOPIC}-0")

    def acknowledged(self, commit: Commit) -> None:
        """The commit was made in the leader epoch of now, or in an earlier one."""
        watched = self._watched()
        if watched is not None and watched.state is not None:
            commits = self._acknowledged.setdefault(watched.state.leader_epoch, {})
            commits[commit.group] = commit.offset
            self.commits.append(commit)
            self._fired("offset_committed")

    def told(self, commit: Commit, answer: OffsetFetchResponse) -> None:
        """The broker that acknowledged the commit must show it, or refuse."""
        watched, group = self._watched(), answer.groups[0]
        places = [place for topic in group.topics for place in topic.partitions]
        is_refused = any(each.error_code is not ErrorCode.NONE for each in (group, *places))
        if watched is None or watched.excused or is_refused:
            return
        offsets = [place.committed_offset for place in places]
        if offsets != [commit.offset]:
            raise Violation(
                "D-GRP",
                f"{commit.group} committed {commit.offset}, acknowledged by {commit.broker}, which"
                f" then showed {offsets}, and no error",
            )
        self._fired("commit_shown")

    def settled_broker(self, host: Host, broker: Broker) -> None:
        for coordinator in broker.coordinators:
            is_new = self._served.get(host.node_id) is not coordinator
            if coordinator.error is ErrorCode.NONE and is_new:
                self._served[host.node_id] = coordinator
                self._has_loaded(host, coordinator)

    def _has_loaded(self, host: Host, coordinator: Coordinator) -> None:
        watched = self._watched()
        if watched is None or watched.excused:
            return
        earlier = {
            group: offset
            for epoch, commits in self._acknowledged.items()
            if epoch < coordinator.leader_epoch
            for group, offset in commits.items()
        }
        for group, offset in earlier.items():
            known = coordinator.offsets.committed.get(group, {}).get(PLACE)
            if known is None or known.offset != offset:
                raise Violation(
                    "D-GRP",
                    f"{group} committed {offset} before epoch {coordinator.leader_epoch}, whose"
                    f" coordinator on {host.node_id} knows {known}",
                )
        if earlier:
            self._fired("commits_loaded")


_NO_GENERATION = -1
OfMember = HeartbeatRequest | OffsetCommitRequest
_FENCED = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)


@dataclass(slots=True)
class _Told:
    """Everything that one coordinator has told the members of one group."""

    handed_out: int = _NO_GENERATION  # the newest generation
    assigned: int = _NO_GENERATION
    left: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Group:
    served: dict[Coordinator, _Told] = field(default_factory=dict)
    told: set[tuple[int, str]] = field(default_factory=set)  # a generation, and who was told of it
    owners: dict[tuple[int, int], str] = field(default_factory=dict)  # by generation and piece

    def by(self, coordinator: Coordinator) -> _Told:
        return self.served.setdefault(coordinator, _Told())

    def newest_assigned(self, coordinator: Coordinator) -> int:
        """The newest generation that this coordinator or an earlier one has assigned."""
        epoch = coordinator.leader_epoch
        known = (one.assigned for by, one in self.served.items() if by.leader_epoch <= epoch)
        return max(known, default=_NO_GENERATION)


class _Asked(NamedTuple):
    """What was known when a request came in."""

    coordinator: Coordinator
    newest: int  # generation that was handed out
    has_left: bool


class MembershipInvariants(Observer):
    """Raises `Violation`."""

    received_kinds = (OffsetCommitRequest, HeartbeatRequest)

    def __init__(
        self, broker_of: BrokerOf, commits: GroupInvariants, fired: Callable[[str], None]
    ) -> None:
        self._broker_of = broker_of
        self._commits = commits
        self._fired = fired
        self._groups: dict[str, _Group] = {}
        # By node, when its last turn ended.
        self._serving_before: dict[int, tuple[Coordinator, ...]] = {}
        self._asked: dict[tuple[int, int], _Asked] = {}  # by node and token

    def settled_broker(self, host: Host, broker: Broker) -> None:
        self._serving_before[host.node_id] = tuple(broker.coordinators)

    def received(self, host: Host, event: Event) -> None:
        assert isinstance(event, Request), event
        body = event.body
        assert isinstance(body, OfMember), body
        self._asked.pop((host.node_id, event.token), None)
        coordinator = self._coordinator(host, body.group_id)
        # Where the coordinator assigns there are no generations: see `consumer_invariants`.
        if coordinator is not None and body.group_id not in coordinator.consumers.groups:
            group = self._group(body.group_id)
            served = group.by(coordinator)
            newest = max(served.handed_out, group.newest_assigned(coordinator))
            asked = _Asked(coordinator, newest, body.member_id in served.left)
            self._asked[host.node_id, event.token] = asked

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        match request, response:
            case JoinGroupRequest(), JoinGroupResponse(error_code=ErrorCode.NONE):
                self._handed_out(host, request.group_id, response)
            case SyncGroupRequest(), SyncGroupResponse(error_code=ErrorCode.NONE):
                self._assigned(host, request, response)
            case LeaveGroupRequest(), LeaveGroupResponse(error_code=ErrorCode.NONE):
                self._left(host, request.group_id, response)
            case HeartbeatRequest(), HeartbeatResponse():
                self._accepted(host, token, request, response.error_code)
            case OffsetCommitRequest(), OffsetCommitResponse(topics=(told, *_)):
                error = told.partitions[0].error_code
                if error in _FENCED:
                    self._fired("commit_fenced")
                if _generation_of(request) >= 0:
                    self._accepted(host, token, request, error)

    def _group(self, group_id: str) -> _Group:
        return self._groups.setdefault(group_id, _Group())

    def _coordinator(self, host: Host, group_id: str) -> Coordinator | None:
        """That serves the group, and has been there since this turn began."""
        broker = self._broker_of(host)
        found = None if broker is None else broker.coordinators.find(group_id)
        is_known = found in self._serving_before.get(host.node_id, ())
        return found if isinstance(found, Coordinator) and is_known else None

    # --- what was answered ------------------------------------------------------------------

    def _handed_out(self, host: Host, group_id: str, response: JoinGroupResponse) -> None:
        group, generation = self._group(group_id), response.generation_id
        group.told.add((generation, response.member_id))
        coordinator = self._coordinator(host, group_id)
        if coordinator is None:
            return
        served = group.by(coordinator)
        begins = 1 if response.members else 0  # of its leader: after an assignment it is another
        known = group.newest_assigned(coordinator) + begins
        self._require(group_id, coordinator, generation, at_least=max(known, served.handed_out))
        served.handed_out = max(served.handed_out, generation)

    def _assigned(self, host: Host, request: SyncGroupRequest, response: SyncGroupResponse) -> None:
        group, generation = self._group(request.group_id), request.generation_id
        for piece in pieces_of(response.assignment):
            owner = group.owners.setdefault((generation, piece), request.member_id)
            if owner != request.member_id:
                self._violated(
                    "G-ONE",
                    f"{request.group_id}: in generation {generation}, {piece} is given to"
                    f" {request.member_id}, and was to {owner}",
                )
        self._fired("group_assigned")
        coordinator = self._coordinator(host, request.group_id)
        if coordinator is not None:
            served = group.by(coordinator)
            known = group.newest_assigned(coordinator)
            self._require(request.group_id, coordinator, generation, at_least=known)
            served.assigned = generation

    def _left(self, host: Host, group_id: str, response: LeaveGroupResponse) -> None:
        coordinator = self._coordinator(host, group_id)
        if coordinator is not None:
            served = self._group(group_id).by(coordinator)
            served.left |= {each.member_id for each in response.members}

    def _require(
        self, group_id: str, coordinator: Coordinator, generation: int, *, at_least: int
    ) -> None:
        if generation < at_least:
            self._violated(
                "G-GEN",
                f"{group_id}: the coordinator of epoch {coordinator.leader_epoch} hands out"
                f" generation {generation}, where {at_least} is the lowest that it may",
            )

    def _accepted(self, host: Host, token: int, request: OfMember, error: ErrorCode) -> None:
        asked = self._asked.pop((host.node_id, token), None)
        if asked is None or error is not ErrorCode.NONE:
            return
        if self._coordinator(host, request.group_id) is not asked.coordinator:
            return
        group, generation = self._group(request.group_id), _generation_of(request)
        is_told = (generation, request.member_id) in group.told
        if generation < asked.newest or asked.has_left or not is_told:
            self._violated(
                "G-COM",
                f"{request.group_id}: {host.node_id} accepts {type(request).__name__} of"
                f" {request.member_id} in generation {generation}; the newest was {asked.newest},"
                f" it has{'' if asked.has_left else ' not'} left, and was"
                f"{'' if is_told else ' not'} told of it",
            )

    def _violated(self, rule: str, detail: str) -> None:
        if not self._commits.may_be_lost:
            raise Violation(rule, detail)


def _generation_of(request: OfMember) -> int:
    if isinstance(request, HeartbeatRequest):
        return request.generation_id
    return request.generation_id_or_member_epoch


def pieces_of(assignment: bytes) -> frozenset[int]:
    return frozenset(assignment)
