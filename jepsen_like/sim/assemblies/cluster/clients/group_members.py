"""Members of consumer groups: they join, stay, commit, leave, die, and return (classic protocol).

A member is an operator whose next operation depends on what it was told last. Its group shares out
pieces of work, which stand for partitions: the leader deals them out anew each time it is asked, so
that two assignments of one generation are not alike. Now and then a member commits once more as the
member of the generation before.

What coordinators answer is judged in `group_invariants`, and the end of a run in `liveness`.
"""

from jepsen_like.sim.assemblies.cluster.clients.operators import Operation, Operator, commit_of
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.invariants.group_invariants import pieces_of
from jepsen_like.sim.world.world import World
from wire.errors import ErrorCode
from wire.messages.group_offsets import OffsetCommitResponse
from wire.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

__all__ = ["GroupMember"]

_PIECES = frozenset(range(4))  # of work, in each group
_GROUP_SIZE = 3
_TYPE, _PROTOCOL = "consumer", "dealt"
_PROTOCOLS = (JoinGroupRequestProtocol(name=_PROTOCOL, metadata=b""),)
# What a member of a generation does next: the first line whose bound is above a draw from [0, 1).
_LEAVES = 0.03
_DIES = 0.06
_SLEEPS = 0.09
_REJOINS = 0.18
_COMMITS_LATE = 0.3
_COMMITS = 0.6
_HASTE_SHARE = 0.3  # of those that ask for an assignment: they give up soon, and join again


class GroupMember(Operator):
    stream = "group members"

    def __init__(self, world: World, options: ClusterOptions, number: int) -> None:
        super().__init__(world, options, options.operations.member_interval_ms)
        self._random = world.fork(f"{self.stream}/{number}")
        self.group = f"members-{number // _GROUP_SIZE}"
        self.all_pieces = _PIECES
        self.is_restless = True  # it leaves and dies now and then
        self.generation = -1
        self.pieces: frozenset[int] | None = None  # None: it has no assignment, or joins again
        self._id = ""
        self._former = ("", -1)  # its id and generation before
        self._assignments: tuple[SyncGroupRequestAssignment, ...] = ()  # by it, as the leader
        self._is_syncing = False
        self._node = number % len(options.brokers)

    @property
    def session_timeout_ms(self) -> int:
        return self.timeout_ms

    @property
    def rebalance_timeout_ms(self) -> int:
        return self.timeout_ms // 2

    def _operate(self) -> Operation[None]:
        join_or_stay = self._join if self.pieces is None else self._stay
        asks = self._sync() if self._is_syncing else join_or_stay()
        if asks is not None:
            self._told((yield from asks))

    def _stay(self) -> Operation[object] | None:
        """As a member of a generation."""
        draw = self._random.random()
        if draw < _REJOINS and not self.is_restless:
            return self._heartbeat()
        if draw < _LEAVES:
            return self._leave()
        if draw < _DIES:
            self._become_new()
            return None
        if draw < _SLEEPS:
            return None
        if draw < _REJOINS:
            self.pieces = None
            return self._join()
        if draw < _COMMITS_LATE and self._former[0]:
            return self._commit(*self._former)
        return self._commit(self._id, self.generation) if draw < _COMMITS else self._heartbeat()

    # --- what it asks -----------------------------------------------------------------------

    def _ask_coordinator(self, body: object, timeout_ms: int | None = None) -> Operation[object]:
        brokers = self._options.brokers
        return self._ask(brokers[self._node % len(brokers)], body, timeout_ms)

    def _join(self) -> Operation[object]:
        return self._ask_coordinator(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=self.session_timeout_ms,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                member_id=self._id,
                protocol_type=_TYPE,
                protocols=_PROTOCOLS,
            )
        )

    def _sync(self) -> Operation[object]:
        self._is_syncing = False  # whoever gets no answer joins again
        is_hasty = self.is_restless and self._random.random() < _HASTE_SHARE
        return self._ask_coordinator(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self._id,
                protocol_type=_TYPE,
                protocol_name=_PROTOCOL,
                assignments=self._assignments,
            ),
            self._random.randint(1, 1 + self.interval_ms) if is_hasty else None,
        )

    def _heartbeat(self) -> Operation[object]:
        return self._ask_coordinator(
            HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self._id)
        )

    def _commit(self, member_id: str, generation: int) -> Operation[object]:
        offset = self._random.randrange(1 << 20)
        return self._ask_coordinator(commit_of(self.group, offset, generation, member_id))

    def _leave(self) -> Operation[object]:
        leaving = MemberIdentity(member_id=self._id)
        self._become_new()
        return self._ask_coordinator(LeaveGroupRequest(group_id=self.group, members=(leaving,)))

    # --- what it is told --------------------------------------------------------------------

    def _told(self, answer: object) -> None:
        match answer:
            case JoinGroupResponse(error_code=ErrorCode.NONE):
                self._join_generation(answer)
            case JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED):
                self._id = answer.member_id
            case SyncGroupResponse(error_code=ErrorCode.NONE):
                self.pieces = pieces_of(answer.assignment)
            case JoinGroupResponse() | SyncGroupResponse() | HeartbeatResponse():
                self._note_error(answer.error_code)
            case LeaveGroupResponse():
                pass  # it has become new already
            case OffsetCommitResponse():
                pass  # heartbeats tell it what has become of its membership
            case None:
                self._node += 1

    def _join_generation(self, answer: JoinGroupResponse) -> None:
        if self.generation not in (-1, answer.generation_id):
            self._former = (self._id, self.generation)
        self.generation = answer.generation_id
        self._is_syncing = True
        dealt = [bytearray() for _ in answer.members]
        for piece in sorted(_PIECES) if dealt else ():
            self._random.choice(dealt).append(piece)
        self._assignments = tuple(
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=bytes(pieces))
            for member, pieces in zip(answer.members, dealt, strict=True)
        )

    def _note_error(self, error: ErrorCode) -> None:
        match error:
            case ErrorCode.NONE:
                pass
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._become_new()
            case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.ILLEGAL_GENERATION:
                self.pieces = None
            case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._node += 1

    def _become_new(self) -> None:
        """Its process is a new one, or its coordinator has forgotten it: it needs another id."""
        if self._id and self.generation >= 0:
            self._former = (self._id, self.generation)
        self._id, self.generation, self.pieces = "", -1, None
