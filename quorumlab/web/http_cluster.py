"""The nodes of a cluster as their HTTP sides tell it, and what Kafka's APIs say of it.

Roles are known once a node has answered; a node that has not is named in both tables.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from jepsen_like.real import pages
from quorumlab.inspection.target import Address
from quorumlab.top.asking import (
    LIMIT_SECONDS,
    NO_ANSWER,
    Panel,
    Questions,
    Rates,
    active_in,
    controller_sight,
    counted,
    is_fenced,
    quorum_in,
    quorum_question,
    without_topics,
)
from quorumlab.top.cluster_view import BrokerSight, ClusterView
from quorumlab.top.two_views import two_views
from quorumlab.web.reader_keys import ReaderKeys
from quorumlab.web.sources import Source
from wire.messages.voters import QuorumPartitionResult
from wire.zk.designs import Design

__all__ = ["HttpCluster"]

_SERVERS_MAX = 3  # of which each is asked what Kafka's APIs say
_APPLIED_SECONDS = 1.0


class HttpCluster:
    """`own` is among `nodes`, the HTTP sides by node id; `servers` are of Kafka's protocol."""

    def __init__(
        self,
        own: int,
        nodes: Mapping[int, Address],
        servers: Sequence[Address],
        source: Source,
        design: Design | None = None,
        keys: ReaderKeys | None = None,
    ) -> None:
        self._keys = keys or ReaderKeys()
        self._own = own
        self._nodes = nodes
        self._servers = servers
        self._source = source
        self._design = design  # of ZooKeeper mode: no controllers, no quorum, no log to apply
        self._panel = Panel()
        self._rates = Rates()
        self._roles: dict[int, Sequence[str]] = {}

    def look(self) -> ClusterView:
        answers = self._panel.ask(self._questions())
        told = {node: found for (kind, node), found in answers.items() if kind == "pulse"}
        self._roles |= {node: found["roles"] for node, found in told.items()}
        quorum, _ = quorum_in(answers)
        metadata = [answers[key] for key in sorted(answers) if key[0] == "metadata"]
        active, epoch = active_in(told)
        voters, registered = _voters(quorum), self._registered()
        return ClusterView(
            cluster=metadata[0].cluster_id or "" if metadata else "",
            active_controller=active,
            epoch=epoch,
            controllers=[
                controller_sight(node, told.get(node), self._silence(node), quorum)
                for node in sorted({*self._with_role("controller", registered), *voters})
            ],
            brokers=[
                self._broker(node, told.get(node))
                for node in sorted({*self._with_role("broker", voters), *registered})
            ],
            note=self._note(),
            views=two_views(
                metadata[0] if metadata else None,
                quorum,
                self._source.state,
                design=self._design,
                active=active,
            ),
        )

    def applied(self, offsets: Sequence[int]) -> Mapping[str, Any]:
        """When each node applied each offset: `{"nodes": {id: answer}, "silent": [ids]}`.

        The answer of a node is that of its /v1/applied.
        """
        if self._design is not None:
            return {}
        if not offsets:
            return {"nodes": {}, "silent": []}
        query = ",".join(map(str, offsets))
        questions: Questions = {
            ("applied", node): self._page(
                node, address, f"/v1/applied?offsets={query}", _APPLIED_SECONDS
            )
            for node, address in self._nodes.items()
        }
        answers = self._panel.ask(questions, limit_seconds=_APPLIED_SECONDS)
        known = {node: found for (_, node), found in answers.items()}
        return {"nodes": known, "silent": sorted(self._nodes.keys() - known.keys())}

    def _with_role(self, role: str, others: Collection[int]) -> Sequence[int]:
        """A node that never answered may be anything, unless it is known to have another role. In
        ZooKeeper designs all are brokers."""
        if self._design is not None:
            return [*self._nodes] if role == "broker" else []
        roles = {node: () if node in others else (role,) for node in self._nodes} | self._roles
        return [node for node in self._nodes if role in roles[node]]

    def _registered(self) -> Sequence[int]:
        state = self._source.state
        return [] if state is None else [*state.image.brokers]

    def _questions(self) -> Questions:
        questions: Questions = {}
        for node, address in self._nodes.items():
            questions["pulse", node] = self._page(node, address, "/v1/pulse", LIMIT_SECONDS)
        others = self._other_servers()
        if self._design is None:
            for number, server in enumerate([*self._servers, *others][:_SERVERS_MAX]):
                questions["quorum", number] = quorum_question(server)
        for number, server in enumerate([*self._servers[:1], *others][:_SERVERS_MAX]):
            questions["metadata", number] = without_topics(server)
        return questions

    def _other_servers(self) -> Sequence[Address]:
        """Brokers, which ask the active controller, where this node cannot."""
        state = self._source.state
        found = [] if state is None else state.image.brokers.values()
        wanted = self._keys.broker_listener
        return [
            Address(where.host, where.port, self._keys.brokers)
            for each in found
            if each.is_active and each.id != self._own
            for where in [end for end in each.end_points if wanted in ("", end.name)][:1]
        ]

    def _page(self, node: int, address: Address, path: str, seconds: float) -> Callable[[], Any]:
        def asked() -> Any:
            answered = pages.ask(
                (address.host, address.port),
                path,
                timeout_seconds=seconds,
                access=self._keys.pages,
            )
            page = answered.page
            is_its_own = isinstance(page, dict) and page.get("node_id") == node
            return page if answered.status == 200 and is_its_own else None

        return asked

    def _broker(self, node: int, pulse: Any) -> BrokerSight:
        now = None if pulse is None else counted(pulse)
        requests, bytes_ = self._rates.of(node, now)
        is_away, away = is_fenced(self._source.state, node), self._source.away
        if pulse is None:
            state = f"{away}, {NO_ANSWER}" if is_away else NO_ANSWER
            return BrokerSight(node, state if node in self._nodes else away, answers=False)
        state = pulse["broker_state"]
        return BrokerSight(
            node, away if state == "running" and is_away else state, requests, bytes_
        )

    def _silence(self, node: int) -> str:
        return NO_ANSWER if node in self._nodes else "address unknown"

    def _note(self) -> str:
        if len(self._nodes) > 1:
            return ""
        return "only this node's HTTP side is known: quorumlab.http.nodes names those of others"


def _voters(quorum: QuorumPartitionResult | None) -> Sequence[int]:
    return [] if quorum is None else [each.replica_id for each in quorum.current_voters]
