"""Changes of the voters under load: a voter is removed, and added again when the fault heals.

Needs voters that live in the log (KIP-853). A change that is refused is asked for again: one at a
time is allowed, a new leader must commit first, and a voter that was away has to catch up.

The proof is what the quorum says of itself: whoever leads had the voter among its voters, and later
a leader, the same or another, has not. That somebody answered "it is no voter" proves nothing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from jepsen_like.faults import Fault, Injected, Proof
from jepsen_like.in_force import InForce, proof_of
from jepsen_like.real.kafka_client import Client, refusal
from jepsen_like.real.layout import ClusterError, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorum.log.files.checkpoints import META_PROPERTIES, parse_meta_properties
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

__all__ = ["Membership"]

_TRY_SECONDS = 10.0
_TIMEOUT_MS = 3_000
_PAUSE_SECONDS = 0.2
_SEEN_SECONDS = 3.0  # for one to lead, if the one that did was removed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quorum:
    """As its leader tells."""

    epoch: int
    leader: int
    voters: frozenset[int]

    def __str__(self) -> str:
        voters = ", ".join(map(str, sorted(self.voters)))
        return f"voters {voters}, led by {self.leader} in epoch {self.epoch}"


class Membership:
    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def why_not(self) -> str:
        if self._cluster.layout.dynamic:
            return ""
        return "the voters are in the configuration: lay the cluster out with first voters"

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        if self.why_not():
            raise ClusterError(self.why_not())
        layout = self._cluster.layout
        voters = [node for node in layout.controllers if node.id in targets]
        before = self._quorum_when(lambda _: True)
        if before is None:
            raise ClusterError("nobody leads the quorum")
        removed = [
            node for node in voters if node.id in before.voters and self._until(self._remove, node)
        ]
        ids = {node.id for node in removed}
        without = self._quorum_when(lambda quorum: quorum.voters.isdisjoint(ids))
        healed: list[_Quorum | None] = []

        def heal() -> None:
            added = {node.id for node in removed if self._until(self._add, node)}
            healed.append(self._quorum_when(lambda quorum: quorum.voters >= added))

        def prove() -> Proof:
            if not removed or without is None:
                return Proof(bit=False, evidence=f"nobody leads without a voter: {before}")
            return proof_of([f"{before}; then {without}; healed: {healed[0] if healed else None}"])

        return InForce([node.id for node in voters], heal=heal, prove=prove)

    def _quorum_when(self, holds: Callable[[_Quorum], bool]) -> _Quorum | None:
        """As soon as whoever leads says so; None if it does not come to that."""
        deadline = time.monotonic() + _SEEN_SECONDS
        while time.monotonic() < deadline:
            quorum = self._quorum()
            if quorum is not None and holds(quorum):
                return quorum
            time.sleep(_PAUSE_SECONDS)
        return None

    def _quorum(self) -> _Quorum | None:
        """The newest that any controller says it leads."""
        cluster = self._cluster
        pages = [cluster.ask(node, "/v1/node")[1] for node in cluster.layout.controllers]
        led = [
            _Quorum(epoch=told["epoch"], leader=page["node_id"], voters=frozenset(told["voters"]))
            for page in pages
            if page and (told := page["quorum"])["role"] == "leader"
        ]
        return max(led, key=lambda quorum: quorum.epoch, default=None)

    def _until(self, change: Callable[[NodeLayout], str], node: NodeLayout) -> bool:
        """Ask until it is done; False if that takes too long."""
        deadline = time.monotonic() + _TRY_SECONDS
        while True:
            try:
                if not change(node):
                    return True
            except ClusterError:
                pass  # nobody answered: it may have been done, and is then refused, or asked again
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_SECONDS)

    def _remove(self, node: NodeLayout) -> str:
        """Why it was refused; empty if it is done, or was before."""
        request = RemoveRaftVoterRequest(voter_id=node.id, voter_directory_id=_directory_id(node))
        with self._client() as client:
            answer = client.ask(request, RemoveRaftVoterResponse)
        done = (ErrorCode.NONE, ErrorCode.VOTER_NOT_FOUND)
        return "" if answer.error_code in done else refusal(answer.error_code, answer.error_message)

    def _add(self, node: NodeLayout) -> str:
        assert node.controller_port is not None, node
        request = AddRaftVoterRequest(
            timeout_ms=_TIMEOUT_MS,
            voter_id=node.id,
            voter_directory_id=_directory_id(node),
            listeners=(Listener(name="CONTROLLER", host=node.host, port=node.controller_port),),
        )
        with self._client() as client:
            answer = client.ask(request, AddRaftVoterResponse)
        done = (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER)
        return "" if answer.error_code in done else refusal(answer.error_code, answer.error_message)

    def _client(self) -> Client:
        """At the brokers themselves, past all proxies."""
        servers = [(node.host, node.port) for node in self._cluster.layout.brokers]
        return Client(servers, timeout_seconds=_TIMEOUT_MS / 1000 + 1.0)


def _directory_id(node: NodeLayout) -> UUID:
    path = node.data / META_PROPERTIES
    try:
        directory_id = parse_meta_properties(path.read_bytes(), str(path)).directory_id
    except (OSError, ValueError) as error:
        raise ClusterError(f"cannot read {path}: {error}") from error
    if directory_id is None:
        raise ClusterError(f"{path} has no directory.id")
    return directory_id
