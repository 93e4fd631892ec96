"""Tools are told of groups by ListGroups and DescribeGroups.

A group whose coordinator assigns (KIP-848) is described by consumer/consumer_describing.py.

Source: KIP-518 (states), KIP-848 (types), KIP-1043 (absent groups); Kafka's ClassicGroup.
"""

from collections.abc import Iterable, Iterator

from broker.groups import protocols
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.group import Group, GroupState
from broker.groups.protocols import CONSUMER
from broker.groups.removal import AnyGroup
from controller.metadata.security import ON_GROUP
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    ListedGroup,
    ListGroupsRequest,
)
from wire.primitives import OPERATIONS_OMITTED

__all__ = ["describe", "list_groups"]

_CLASSIC, _CONSUMER = "classic", "consumer"  # types


def list_groups(groups: Iterable[AnyGroup], request: ListGroupsRequest) -> Iterator[ListedGroup]:
    """The groups that pass the filters; whatever the case of what they ask for."""
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    for group in groups:
        group_type, protocol_type = _CONSUMER, CONSUMER
        if not isinstance(group, ConsumerGroup):
            group_type, protocol_type = _CLASSIC, group.protocol_type or ""
        is_asked = not types or group_type in types
        if is_asked and (not states or group.state.value.lower() in states):
            yield ListedGroup(
                group_id=group.id,
                protocol_type=protocol_type,
                group_state=group.state.value,
                group_type=group_type,
            )


def describe(
    group_id: str, group: AnyGroup | None, request: DescribeGroupsRequest, lacking: Lacking
) -> DescribedGroup:
    """What a member can do is told while it is settled."""
    operations = ON_GROUP if request.include_authorized_operations else OPERATIONS_OMITTED
    if not isinstance(group, Group):
        text = f"Group {group_id} not found."
        if group is not None:
            text = f"Group {group_id} is not a classic group."
        is_error = Capability.KNOWS_GROUP_ID_NOT_FOUND not in lacking  # if not, it is dead
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
            error_message=text if is_error else None,
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            authorized_operations=OPERATIONS_OMITTED if is_error else operations,
        )
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=tuple(
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=protocols.metadata_under(member.protocols, group.protocol)
                if is_stable
                else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ),
        authorized_operations=operations,
    )
