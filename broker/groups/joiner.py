"""A `Joiner` is a JoinGroup request that waits, with its token; it also makes the answers."""

from dataclasses import dataclass

from broker.groups import protocols
from broker.groups.group import Group, Member
from wire.errors import ErrorCode
from wire.messages.groups import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

__all__ = ["Joiner", "join_refusal", "joined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joiner:
    token: int
    request: JoinGroupRequest
    client_id: str
    client_host: str
    new_id: str  # for a member that has none
    needs_id: bool  # the client knows MEMBER_ID_REQUIRED
    can_skip_assignment: bool  # the client knows skip_assignment

    @property
    def member_id(self) -> str:
        return self.request.member_id

    @property
    def instance_id(self) -> str | None:
        return self.request.group_instance_id

    @property
    def rebalance_timeout_ms(self) -> int:
        given = self.request.rebalance_timeout_ms
        return self.request.session_timeout_ms if given < 0 else given


def join_refusal(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id)


def joined(group: Group, member: Member, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The present generation; the leader alone is told who is in it."""
    known: tuple[JoinGroupResponseMember, ...] = ()
    if member.id == group.leader:
        known = tuple(
            JoinGroupResponseMember(
                member_id=other.id,
                group_instance_id=other.instance_id,
                metadata=protocols.metadata_under(other.protocols, group.protocol),
            )
            for other in group.members.values()
        )
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=known,
    )
