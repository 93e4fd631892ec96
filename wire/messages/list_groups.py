"""ListGroups (API key 16), as Kafka's message of version 5 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest:
    states_filter: tuple[str, ...] = ()  # empty: all
    types_filter: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str = ""
    group_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()
