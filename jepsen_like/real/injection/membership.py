"""Changes of the voters under load: a voter is removed, and added again when the fault heals.

Needs voters that live in the log (KIP-853). A change that is refused is asked for again: one at a
time is allowed, a new leader must commit first, and a voter that was away has to catch up.

The proof is what the quorum says of itself: whoever leads had the voter among its voters, and later
a leader, the same or another, has not. That somebody answered "it is no voter" proves nothing.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from jepsen_like.faults.fault import Course, Fault, Proof, in_force
from jepsen_like.histories.history import Kind
from jepsen_like.real.clients.kafka_admin import OperatorClient
from jepsen_like.real.clients.target import target_of_layout
from jepsen_like.real.layout import ClusterError, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import await_value
from jepsen_like.workloads.workload import Wish
from wire.errors import ErrorCode

__all__ = ["NOT_DYNAMIC", "change_voters"]

NOT_DYNAMIC = "the voters are in the configuration: lay the cluster out with first voters"

_TRY_SECONDS = 20.0
_TIMEOUT_SECONDS = 3.0
_PAUSE_SECONDS = 0.2
_SEEN_SECONDS = 10.0  # for one to lead, if the one that did was removed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quorum:
    """As its leader tells."""

    epoch: int
    leader: int
    voters: frozenset[int]

    def __str__(self) -> str:
        voters = ", ".join(map(str, sorted(self.voters)))
        return f"voters {voters}, led by {self.leader} in epoch {self.epoch}"


@in_force
def change_voters(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    voters = [node for node in cluster.layout.controllers if node.id in targets]
    before = _quorum_when(cluster, lambda _: True)
    if before is None:
        raise ClusterError("nobody leads the quorum")
    removed = [
        node
        for node in voters
        if node.id in before.voters
        and _until(cluster, "remove-voter", node, ErrorCode.VOTER_NOT_FOUND)
    ]
    ids = {node.id for node in removed}
    without = _quorum_when(cluster, lambda quorum: quorum.voters.isdisjoint(ids))
    yield [node.id for node in voters]
    added = {
        node.id for node in removed if _until(cluster, "add-voter", node, ErrorCode.DUPLICATE_VOTER)
    }
    healed = _quorum_when(cluster, lambda quorum: quorum.voters >= added)
    if not removed:
        return Proof(bit=False, evidence=f"no voter could be removed: {before}")
    if without is None:
        return Proof(bit=False, evidence=f"nobody leads without {sorted(ids)}: {before}")
    return [f"{before}; then {without}; healed: {healed}"]


def _quorum_when(cluster: LocalCluster, holds: Callable[[_Quorum], bool]) -> _Quorum | None:
    """As soon as whoever leads says so; None if it does not come to that."""

    def told() -> _Quorum | None:
        quorum = _told_quorum(cluster)
        return quorum if quorum is not None and holds(quorum) else None

    return await_value(told, _SEEN_SECONDS, pause_seconds=_PAUSE_SECONDS)


def _told_quorum(cluster: LocalCluster) -> _Quorum | None:
    """The newest that any controller says it leads."""
    pages = [cluster.page(node, "/v1/node") for node in cluster.layout.controllers]
    led = [
        _Quorum(epoch=told["epoch"], leader=page["node_id"], voters=frozenset(told["voters"]))
        for page in pages
        if page and (told := page["quorum"])["role"] == "leader"
    ]
    return max(led, key=lambda quorum: quorum.epoch, default=None)


def _until(cluster: LocalCluster, change: str, node: NodeLayout, already: ErrorCode) -> bool:
    """Ask until it is done, or was before, as `already` says; False if that takes too long."""
    layout = cluster.layout
    past_proxies = {each.id: (each.host, each.port) for each in layout.brokers}
    target = replace(target_of_layout(layout, cluster.credentials), brokers=past_proxies)

    def is_done() -> bool:
        with closing(OperatorClient(target, timeout_seconds=_TIMEOUT_SECONDS)) as client:
            done = client.invoke(Wish(f=change, value=node.id))
        return done.kind is Kind.OK or done.error == already.name

    return await_value(is_done, _TRY_SECONDS, pause_seconds=_PAUSE_SECONDS)
