"""The versions that say a thing otherwise, not only with fewer fields.

Each row names an entity of some versions of an API, and tells how the fields that the canonical
message lacks are taken from it (`write`) and given to it (`read`). A version that is not listed
here differs by missing fields only: they are left out and take their defaults.
"""

from collections.abc import Callable, Mapping
from typing import Any

from wire.api_table import camel_case
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
from wire.messages.transactions import (
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from wire.rules import Difference, Rules

__all__ = ["DIFFERENCES", "MUST_ARRIVE", "rules_for"]


_UPGRADE, _SAFE_DOWNGRADE = 1, 2  # of UpdateFeatures
_CLIENT_METRICS = 16  # of ListConfigResources


def _request(api: str, below: int, story: str, *, entity: str = "", **how: Any) -> Difference:
    """A difference of the versions `below` one; of the request itself, unless `entity` is in it."""
    entity = entity or f"{camel_case(api)}Request"
    return Difference(
        api=api, kind="request", entity=entity, versions=range(below), story=story, **how
    )


def _response(api: str, below: int, story: str, **how: Any) -> Difference:
    entity = f"{camel_case(api)}Response"
    return Difference(
        api=api, kind="response", entity=entity, versions=range(below), story=story, **how
    )


def _read_coordinator(values: dict[str, Any]) -> dict[str, Any]:
    names = ("node_id", "host", "port", "error_code", "error_message")
    found = {name: values.pop(name) for name in names if name in values}
    return {"coordinators": (FoundCoordinator(key="", **found),)}


def _error_of_leaving(response: Any) -> ErrorCode:
    first = next(iter(response.members), MemberResponse(member_id=""))
    return ErrorCode(response.error_code or first.error_code)


def _first(elements: str, absent: Any, *names: str) -> Mapping[str, Callable[[Any], Any]]:
    """Fields of the first element of an array, by name; those of `absent` if the array is empty."""

    def taken(name: str) -> Callable[[Any], Any]:
        return lambda message: getattr(next(iter(getattr(message, elements)), absent), name)

    return {name: taken(name) for name in names}


_OLD_TRANSACTION = "v3_and_below_"  # before each field of the one that is asked for
_OF_TRANSACTION = ("transactional_id", "producer_id", "producer_epoch", "topics")
_OLD_RESULTS = "results_by_topic_v3_and_below"


def _one_transaction(request: Any) -> AddPartitionsToTxnTransaction:
    none = AddPartitionsToTxnTransaction(transactional_id="", producer_id=-1, producer_epoch=-1)
    return next(iter(request.transactions), none)


def _old_field(name: str) -> Callable[[Any], Any]:
    return lambda request: getattr(_one_transaction(request), name)


def _old_features(name: str, minimum: str) -> Mapping[str, Callable[[Any], Any]]:
    """Older readers fail on a feature whose lowest version is 0 (KAFKA-17492)."""
    return {
        name: lambda message: tuple(
            feature for feature in getattr(message, name) if getattr(feature, minimum) != 0
        )
    }


DIFFERENCES: tuple[Difference, ...] = (
    _request(
        "add_partitions_to_txn",
        4,
        "it asks for one transaction.",
        write={_OLD_TRANSACTION + name: _old_field(name) for name in _OF_TRANSACTION},
        read=lambda values: {
            "transactions": (
                AddPartitionsToTxnTransaction(
                    **{name: values[_OLD_TRANSACTION + name] for name in _OF_TRANSACTION}
                ),
            )
        },
        elements={_OLD_TRANSACTION + "topics": AddPartitionsToTxnTopic},
    ),
    _response(
        "add_partitions_to_txn",
        4,
        "it answers for one transaction, without its id.",
        write={
            _OLD_RESULTS: lambda response: (
                next(
                    iter(response.results_by_transaction), AddPartitionsToTxnResult()
                ).topic_results
            )
        },
        read=lambda values: {
            "results_by_transaction": (
                AddPartitionsToTxnResult(topic_results=values[_OLD_RESULTS]),
            )
        },
        elements={_OLD_RESULTS: AddPartitionsToTxnTopicResult},
    ),
    _request(
        "alter_partition",
        3,
        "the ISR is a list of broker ids, without their epochs.",
        entity="PartitionData",
        write={"new_isr": lambda data: tuple(b.broker_id for b in data.new_isr_with_epochs)},
        read=lambda values: {
            "new_isr_with_epochs": tuple(BrokerState(broker_id=id_) for id_ in values["new_isr"])
        },
    ),
    _response(
        "api_versions",
        4,
        "features that start at 0 are left out; older clients fail on them.",
        write=_old_features("supported_features", "min_version"),
    ),
    _request(
        "broker_registration",
        4,
        "features that start at 0 are left out; older controllers fail on them.",
        write=_old_features("features", "min_supported_version"),
    ),
    _request(
        "delete_topics",
        6,
        "topics are given by name only.",
        write={"topic_names": lambda request: tuple(t.name or "" for t in request.topics)},
        read=lambda values: {
            "topics": tuple(DeleteTopicState(name=name) for name in values["topic_names"])
        },
    ),
    _request(
        "end_quorum_epoch",
        1,
        "the preferred successors are ids, without directories.",
        entity="PartitionData",
        write={
            "preferred_successors": lambda data: tuple(
                candidate.candidate_id for candidate in data.preferred_candidates
            )
        },
        read=lambda values: {
            "preferred_candidates": tuple(
                ReplicaInfo(candidate_id=id_) for id_ in values["preferred_successors"]
            )
        },
    ),
    _request(
        "fetch",
        15,
        "the replica is an id, without its epoch.",
        write={"replica_id": lambda request: request.replica_state.replica_id},
        read=lambda values: {"replica_state": ReplicaState(replica_id=values["replica_id"])},
    ),
    _request(
        "find_coordinator",
        4,
        "it asks for one key.",
        write={"key": lambda request: next(iter(request.coordinator_keys), "")},
        read=lambda values: {"coordinator_keys": (values["key"],)},
    ),
    _response(
        "find_coordinator",
        4,
        "it names one coordinator, without its key.",
        write=_first(
            "coordinators",
            FoundCoordinator(),
            *("error_code", "error_message", "node_id", "host", "port"),
        ),
        read=_read_coordinator,
    ),
    _request(
        "leave_group",
        3,
        "one member leaves.",
        write={"member_id": lambda r: next((m.member_id for m in r.members), "")},
        read=lambda values: {"members": (MemberIdentity(member_id=values["member_id"]),)},
    ),
    _response(
        "leave_group",
        3,
        "the one member's error is that of the whole.",
        write={"error_code": _error_of_leaving},
    ),
    _request(
        "metadata",
        1,
        "an empty list of topics means all of them; there is no null.",
        read=lambda values: {"topics": values["topics"] or None},
    ),
    _request(
        "list_config_resources",
        1,
        "client metrics are all that can be listed.",
        read=lambda _: {"resource_types": (_CLIENT_METRICS,)},
    ),
    _request(
        "update_features",
        1,
        "a downgrade is allowed or not; one that is allowed is a safe one.",
        entity="FeatureUpdateKey",
        write={"allow_downgrade": lambda update: update.upgrade_type != _UPGRADE},
        read=lambda values: {
            "upgrade_type": _SAFE_DOWNGRADE if values["allow_downgrade"] else _UPGRADE
        },
    ),
    _request(
        "offset_fetch",
        8,
        "it asks for one group.",
        write=_first(
            "groups", OffsetFetchRequestGroup(group_id="", topics=()), "group_id", "topics"
        ),
        read=lambda values: {
            "groups": (
                OffsetFetchRequestGroup(group_id=values["group_id"], topics=values["topics"]),
            )
        },
        elements={"topics": OffsetFetchRequestTopics},
    ),
    _response(
        "offset_fetch",
        8,
        "it answers for one group, without its name.",
        write=_first("groups", OffsetFetchResponseGroup(), "topics", "error_code"),
        read=lambda values: {
            "groups": (
                OffsetFetchResponseGroup(
                    topics=values["topics"], error_code=values.get("error_code", ErrorCode.NONE)
                ),
            )
        },
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
