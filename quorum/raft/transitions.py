"""Which role a replica changes to when a peer names an epoch or a leader, in whatever message.

Every message of the quorum names an epoch, and most name its leader. A replica adopts a later epoch
at once. It follows a leader that it did not know, if it knows where that leader listens. It ignores
an epoch that none could follow (`EPOCH_MAX`).

Source: Raft thesis 3.3; KIP-595; Kafka's `maybeTransition`.
"""

from dataclasses import dataclass

from quorum.core.types import EPOCH_MAX, Endpoint
from quorum.raft import becoming
from quorum.raft.replica import Replica
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Follower, Prospective, Role, leader_of

__all__ = ["TwoLeaders", "locate", "maybe_transition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLeaders:
    """Election safety (thesis 3.4) is broken: the log can no longer be trusted."""

    epoch: int
    known: int
    told: int

    def __str__(self) -> str:
        return f"epoch {self.epoch} has two leaders, {self.known} and {self.told}"


def maybe_transition(
    replica: Replica, role: Role, told: KnownLeader, now_ms: int
) -> Role | TwoLeaders | None:
    """The role to change to; None if this is nothing new."""
    epoch, leader_id = told.epoch, told.leader_id
    if epoch < role.epoch or epoch > EPOCH_MAX:
        return None
    if epoch > role.epoch:
        return _enter(replica, role, told, now_ms)
    known = leader_of(role, replica.node_id)
    if leader_id < 0 or (known is None and leader_id == replica.node_id):
        # The peer names us leader of this epoch, but our disk has lost that history: we cannot
        # resume it.
        return None
    if known is not None and known != leader_id:
        return TwoLeaders(epoch=epoch, known=known, told=leader_id)
    if known == replica.node_id or isinstance(role, Follower):
        return None
    endpoint = locate(replica, leader_id, told.endpoint)
    if known == leader_id and (endpoint is None or isinstance(role, Prospective)):
        return None  # a prospective replica needs a sign of life from the leader itself
    return _enter(replica, role, told, now_ms)


def _enter(replica: Replica, role: Role, told: KnownLeader, now_ms: int) -> Role:
    epoch, leader_id = told.epoch, told.leader_id
    voted = role.voted if epoch == role.epoch else None
    if leader_id == replica.node_id:
        # We led this epoch and have lost our disk since. A leader has voted for itself: we
        # remember that vote, so that we do not vote for another in the same epoch.
        voted, leader_id = replica.key, -1
    if leader_id < 0:
        return becoming.unattached(replica, role, epoch=epoch, voted=voted, now_ms=now_ms)
    endpoint = locate(replica, leader_id, told.endpoint)
    if endpoint is None:
        return becoming.unattached(
            replica, role, epoch=epoch, leader_id=leader_id, voted=voted, now_ms=now_ms
        )
    return becoming.follow(
        replica, role, epoch=epoch, leader_id=leader_id, endpoint=endpoint, now_ms=now_ms
    )


def locate(replica: Replica, leader_id: int, told: Endpoint | None) -> Endpoint | None:
    """Where the leader is. Static voters are where the configuration says (it may name a proxy);
    otherwise the message is newer than our log."""
    configured = replica.voters.endpoint_of(leader_id)
    if replica.kraft_version == 0 and configured is not None:
        return configured
    if told is not None and told.host:
        return Endpoint(leader_id, told.host, told.port)
    return configured
