"""kraft.version: with 0 the voters are static, with 1 they are in the log (KIP-853).

It is a finalised feature like others, but lives in control records: brokers and controllers show it
beside the features of the metadata image. Raising it writes the voters as they have told of
themselves, so all of them must have done so.

Source: KIP-853; Kafka's KRaftVersion and LeaderState.
"""

from quorum.raft import leading
from quorum.raft.replica import Replica
from quorum.raft.roles import Leader, Role
from quorum.raft.voter_history import record_of
from quorum.raft.voters import KRAFT_VERSION, SUPPORTED_KRAFT_VERSIONS
from wire.api_table import APIS, ListenerKind, api_versions_for
from wire.control_records import KRaftVersion
from wire.messages.features import ApiVersionsResponse, SupportedFeatureKey
from wire.primitives import ZERO_UUID

__all__ = ["describe_versions", "raise_kraft_version"]

_OF_THE_QUORUM = (
    "add_raft_voter",
    "api_versions",
    "begin_quorum_epoch",
    "describe_quorum",
    "end_quorum_epoch",
    "fetch",
    "fetch_snapshot",
    "remove_raft_voter",
    "update_raft_voter",
    "vote",
)
_SERVED = frozenset(api.key for api in APIS if api.name in _OF_THE_QUORUM)


def raise_kraft_version(replica: Replica, role: Role, version: int, now_ms: int) -> str | None:
    """Finalise `version`, with which the voters move into the log. Why not, else None.

    Nothing is written where it is finalised already. The caller sees to the metadata.version.
    """
    if not isinstance(role, Leader):
        return "this node does not lead the quorum"
    current = replica.kraft_version
    if version == current:
        return None
    if version < current:
        return f"{KRAFT_VERSION} cannot be lowered from {current} to {version}"
    if role.high_watermark is None:
        return "the leader has committed nothing in its epoch yet: try again"
    lacking = [
        voter.key.id
        for voter in role.updated_voters
        if not voter.supports(version) or voter.key.directory_id == ZERO_UUID
    ]
    if lacking:
        return (
            f"voters {lacking} have not said that they know {KRAFT_VERSION} {version}: those that "
            f"do tell a new leader after {replica.config.report_interval_ms / 1000:g} s"
        )
    records = (KRaftVersion(kraft_version=version), record_of(role.updated_voters))
    leading.append_control(replica, role, records, now_ms)
    return None


def describe_versions() -> ApiVersionsResponse:
    """The answer of a node on which nothing but this engine runs."""
    known = SUPPORTED_KRAFT_VERSIONS
    feature = SupportedFeatureKey(
        name=KRAFT_VERSION,
        min_version=known.min_supported_version,
        max_version=known.max_supported_version,
    )
    served = (api for api in api_versions_for(ListenerKind.CONTROLLER) if api.api_key in _SERVED)
    return ApiVersionsResponse(api_keys=tuple(served), supported_features=(feature,))
