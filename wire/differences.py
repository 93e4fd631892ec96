"""Where a version says a thing otherwise, not only with fewer fields.

Each row names an entity of some versions of an API, and tells how the fields that the canonical
message lacks are taken from it (`write`) and given to it (`read`). What is not listed here differs
by missing fields only: they are left out and take their defaults.
"""

from collections.abc import Callable, Mapping
from typing import Any

from wire.errors import ErrorCode
from wire.messages.fetching import ReplicaState
from wire.messages.group_offsets import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from wire.messages.groups import FoundCoordinator, MemberIdentity, MemberResponse
from wire.messages.partitions import BrokerState
from wire.messages.quorum_epochs import ReplicaInfo
from wire.messages.topics import DeleteTopicState
from wire.rules import Difference, Rules

__all__ = ["DIFFERENCES", "MUST_ARRIVE", "rules_for"]


_UPGRADE, _SAFE_DOWNGRADE = 1, 2  # of UpdateFeatures
_CLIENT_METRICS = 16  # of ListConfigResources


def _read_new_isr(values: dict[str, Any]) -> None:
    ids = values["new_isr"]
    values["new_isr_with_epochs"] = tuple(BrokerState(broker_id=id_) for id_ in ids)


def _read_topic_names(values: dict[str, Any]) -> None:
    values["topics"] = tuple(DeleteTopicState(name=name) for name in values["topic_names"])


def _read_successors(values: dict[str, Any]) -> None:
    ids = values["preferred_successors"]
    values["preferred_candidates"] = tuple(ReplicaInfo(candidate_id=id_) for id_ in ids)


def _read_replica_id(values: dict[str, Any]) -> None:
    values["replica_state"] = ReplicaState(replica_id=values["replica_id"])


def _read_coordinator_key(values: dict[str, Any]) -> None:
    values["coordinator_keys"] = (values["key"],)


def _read_coordinator(values: dict[str, Any]) -> None:
    names = ("node_id", "host", "port", "error_code", "error_message")
    found = {name: values.pop(name) for name in names if name in values}
    values["coordinators"] = (FoundCoordinator(key="", **found),)


def _read_leaving_member(values: dict[str, Any]) -> None:
    values["members"] = (MemberIdentity(member_id=values["member_id"]),)


def _error_of_leaving(response: Any) -> ErrorCode:
    first = next(iter(response.members), MemberResponse(member_id=""))
    return ErrorCode(response.error_code or first.error_code)


def _read_group_request(values: dict[str, Any]) -> None:
    group = OffsetFetchRequestGroup(group_id=values["group_id"], topics=values["topics"])
    values["groups"] = (group,)


def _read_group_response(values: dict[str, Any]) -> None:
    error = values.get("error_code", ErrorCode.NONE)
    values["groups"] = (OffsetFetchResponseGroup(topics=values["topics"], error_code=error),)


def _first_group(name: str, absent: Any) -> Callable[[Any], Any]:
    return lambda message: getattr(next(iter(message.groups), absent), name)


def _read_all_topics(values: dict[str, Any]) -> None:
    values["topics"] = values["topics"] or None


def _read_client_metrics(values: dict[str, Any]) -> None:
    values["resource_types"] = (_CLIENT_METRICS,)


def _read_allow_downgrade(values: dict[str, Any]) -> None:
    values["upgrade_type"] = _SAFE_DOWNGRADE if values["allow_downgrade"] else _UPGRADE


def _old_features(name: str, minimum: str) -> Callable[[Any], Any]:
    """Older readers fail on a feature whose lowest version is 0 (KAFKA-17492)."""
    return lambda message: tuple(
        feature for feature in getattr(message, name) if getattr(feature, minimum) != 0
    )


def _first_coordinator(name: str) -> Callable[[Any], Any]:
    return lambda message: getattr(next(iter(message.coordinators), FoundCoordinator()), name)


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        api="alter_partition",
        kind="request",
        entity="PartitionData",
        versions=range(3),
        story="the ISR is a list of broker ids, without their epochs.",
        write={"new_isr": lambda data: tuple(b.broker_id for b in data.new_isr_with_epochs)},
        read=_read_new_isr,
    ),
    Difference(
        api="api_versions",
        kind="response",
        entity="ApiVersionsResponse",
        versions=range(4),
        story="features that start at 0 are left out; older clients fail on them.",
        write={"supported_features": _old_features("supported_features", "min_version")},
    ),
    Difference(
        api="broker_registration",
        kind="request",
        entity="BrokerRegistrationRequest",
        versions=range(4),
        story="features that start at 0 are left out; older controllers fail on them.",
        write={"features": _old_features("features", "min_supported_version")},
    ),
    Difference(
        api="delete_topics",
        kind="request",
        entity="DeleteTopicsRequest",
        versions=range(6),
        story="topics are given by name only.",
        write={"topic_names": lambda request: tuple(t.name or "" for t in request.topics)},
        read=_read_topic_names,
    ),
    Difference(
        api="end_quorum_epoch",
        kind="request",
        entity="PartitionData",
        versions=range(1),
        story="the preferred successors are ids, without directories.",
        write={
            "preferred_successors": lambda data: tuple(
                candidate.candidate_id for candidate in data.preferred_candidates
            )
        },
        read=_read_successors,
    ),
    Difference(
        api="fetch",
        kind="request",
        entity="FetchRequest",
        versions=range(15),
        story="the replica is an id, without its epoch.",
        write={"replica_id": lambda request: request.replica_state.replica_id},
        read=_read_replica_id,
    ),
    Difference(
        api="find_coordinator",
        kind="request",
        entity="FindCoordinatorRequest",
        versions=range(4),
        story="it asks for one key.",
        write={"key": lambda request: next(iter(request.coordinator_keys), "")},
        read=_read_coordinator_key,
    ),
    Difference(
        api="find_coordinator",
        kind="response",
        entity="FindCoordinatorResponse",
        versions=range(4),
        story="it names one coordinator, without its key.",
        write={
            name: _first_coordinator(name)
            for name in ("error_code", "error_message", "node_id", "host", "port")
        },
        read=_read_coordinator,
    ),
    Difference(
        api="leave_group",
        kind="request",
        entity="LeaveGroupRequest",
        versions=range(3),
        story="one member leaves.",
        write={"member_id": lambda r: next((m.member_id for m in r.members), "")},
        read=_read_leaving_member,
    ),
    Difference(
        api="leave_group",
        kind="response",
        entity="LeaveGroupResponse",
        versions=range(3),
        story="the one member's error is that of the whole.",
        write={"error_code": _error_of_leaving},
    ),
    Difference(
        api="metadata",
        kind="request",
        entity="MetadataRequest",
        versions=range(1),
        story="an empty list of topics means all of them; there is no null.",
        read=_read_all_topics,
    ),
    Difference(
        api="list_config_resources",
        kind="request",
        entity="ListConfigResourcesRequest",
        versions=range(1),
        story="client metrics are all that can be listed.",
        read=_read_client_metrics,
    ),
    Difference(
        api="update_features",
        kind="request",
        entity="FeatureUpdateKey",
        versions=range(1),
        story="a downgrade is allowed or not; one that is allowed is a safe one.",
        write={"allow_downgrade": lambda update: update.upgrade_type != _UPGRADE},
        read=_read_allow_downgrade,
    ),
    Difference(
        api="offset_fetch",
        kind="request",
        entity="OffsetFetchRequest",
        versions=range(8),
        story="it asks for one group.",
        write={
            name: _first_group(name, OffsetFetchRequestGroup(group_id="", topics=()))
            for name in ("group_id", "topics")
        },
        read=_read_group_request,
        elements={"topics": OffsetFetchRequestTopics},
    ),
    Difference(
        api="offset_fetch",
        kind="response",
        entity="OffsetFetchResponse",
        versions=range(8),
        story="it answers for one group, without its name.",
        write={
            name: _first_group(name, OffsetFetchResponseGroup())
            for name in ("topics", "error_code")
        },
        read=_read_group_response,
        elements={"topics": OffsetFetchResponseTopics},
    ),
)

# Fields that change the meaning of a request: a version without them cannot carry another value
# than the default. A pre-vote sent as a plain vote would be counted and persisted by the peer.
MUST_ARRIVE: Mapping[tuple[str, str, str], tuple[str, ...]] = {
    ("add_raft_voter", "request", "AddRaftVoterRequest"): ("ack_when_committed",),
    ("vote", "request", "PartitionData"): ("pre_vote",),
    ("alter_partition_reassignments", "request", "AlterPartitionReassignmentsRequest"): (
        "allow_replication_factor_change",
    ),
    ("describe_cluster", "request", "DescribeClusterRequest"): ("endpoint_type",),
    ("update_features", "request", "UpdateFeaturesRequest"): ("validate_only",),
    ("elect_leaders", "request", "ElectLeadersRequest"): ("election_type",),
}


def rules_for(api: str, version: int, kind: str) -> Rules:
    """Every version has rules; those of most are empty."""
    return Rules(
        differences={
            row.entity: row
            for row in DIFFERENCES
            if (row.api, row.kind) == (api, kind) and version in row.versions
        },
        must_arrive={
            entity: names
            for (its_api, its_kind, entity), names in MUST_ARRIVE.items()
            if (its_api, its_kind) == (api, kind)
        },
    )
