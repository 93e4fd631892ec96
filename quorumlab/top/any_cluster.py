"""Any cluster, ours or Apache Kafka's, by address: asked through Kafka's own APIs.

These tell no requests, and of bytes only how large logs are: bytes a second are what the logs of a
broker grow by.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from quorumlab.inspection.target import Address
from quorumlab.top.asking import (
    NO_ANSWER,
    Answers,
    Panel,
    Question,
    Questions,
    Rates,
    ask,
    is_fenced,
    lag_of,
    metadata_question,
    partitions_in,
    quorum_in,
    quorum_question,
    without_topics,
)
from quorumlab.top.cluster_view import BrokerSight, ClusterView, ControllerSight, Counted
from quorumlab.top.log_follower import LogFollower
from quorumlab.top.two_views import two_views
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from wire.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from wire.messages.voters import DescribeQuorumResponse, QuorumPartitionResult

__all__ = ["AnyCluster"]

_CONTROLLERS = 2  # an endpoint type (KIP-919)


class AnyCluster:
    """What it has once told is remembered, so that nodes are missed when they go."""

    note = "bytes/s: growth of logs"

    def __init__(self, servers: Sequence[Address], follower: LogFollower) -> None:
        self._servers = servers
        self._settings = servers[0].settings
        self._follower = follower
        self._panel = Panel()
        self._rates = Rates()
        self._cluster_id = ""
        self._brokers: dict[int, DescribeClusterBroker] = {}
        self._voters: Sequence[int] = ()
        self._controllers: dict[int, Address] = {}
        self._unheard: Collection[Question] = ()
        self._turn = 0

    def look(self) -> ClusterView:
        if not self._brokers:
            self._learn(self._panel.ask(self._questions()))
        questions = self._questions()
        answers = self._panel.ask(questions)
        self._unheard = questions.keys() - answers.keys()
        quorum = self._learn(answers)
        return ClusterView(
            cluster=f"{self._cluster_id} at {self._servers[0]}",
            active_controller=None if quorum is None else quorum.leader_id,
            epoch=None if quorum is None else quorum.leader_epoch,
            controllers=[self._controller(node_id, quorum) for node_id in self._voters],
            brokers=[self._broker(node_id, answers) for node_id in sorted(self._brokers)],
            partitions=partitions_in(self._follower, answers),
            note=self.note,
            views=two_views(answers.get(("views", 0)), quorum, self._follower.state),
        )

    def applied(self, offsets: Sequence[int]) -> Mapping[str, Any]:
        """Kafka's APIs do not say when a node applied a record."""
        return {}

    def _questions(self) -> Questions:
        """Servers that were named have negative numbers: nobody knows yet which nodes they are."""
        named = {-1 - place: address for place, address in enumerate(self._servers)}
        brokers = {
            key: Address(each.host, each.port, self._settings)
            for key, each in self._brokers.items()
        }
        questions: Questions = {}
        for key, address in {**named, **brokers}.items():
            questions["cluster", key] = _cluster_question(address)
            if key >= 0:
                questions["sizes", key] = _sizes_question(address)
        for key, address in {**named, **self._controllers}.items():
            questions["quorum", key] = quorum_question(address)
        heard = [brokers[key] for key in brokers if ("cluster", key) not in self._unheard]
        asked = heard or list(named.values())
        self._turn += 1
        broker = asked[self._turn % len(asked)]
        questions["views", 0] = without_topics(broker)
        if self._follower.state is None:
            questions["metadata", 0] = metadata_question(broker)
        return questions

    def _learn(self, answers: Answers) -> QuorumPartitionResult | None:
        self._learn_brokers(told for (kind, _), told in answers.items() if kind == "cluster")
        quorum, described = quorum_in(answers)
        if quorum is not None:
            self._learn_controllers(quorum, described)
        return quorum

    def _learn_brokers(self, told: Iterable[DescribeClusterResponse]) -> None:
        """A controller knows no brokers: there the log has them."""
        state = self._follower.state
        if state is not None and not self._brokers:
            self._brokers = {
                each.id: DescribeClusterBroker(broker_id=each.id, host=where.host, port=where.port)
                for each in state.image.brokers.values()
                for where in each.end_points[:1]
            }
        for response in told:
            if response.error_code is ErrorCode.NONE:
                self._cluster_id = response.cluster_id
                self._brokers |= {each.broker_id: each for each in response.brokers}

    def _learn_controllers(
        self, quorum: QuorumPartitionResult, described: DescribeQuorumResponse
    ) -> None:
        replicas = (*quorum.current_voters, *quorum.observers)
        voters = {each.replica_id for each in quorum.current_voters}
        ids = {each.replica_id for each in replicas if each.replica_id not in self._brokers}
        self._voters = sorted(ids | voters)
        self._controllers = {
            each.node_id: Address(each.listeners[0].host, each.listeners[0].port, self._settings)
            for each in described.nodes
            if each.listeners
        }

    def _controller(self, node_id: int, quorum: QuorumPartitionResult | None) -> ControllerSight:
        lag = lag_of(quorum, node_id)
        if ("quorum", node_id) in self._unheard:
            return ControllerSight(node_id, NO_ANSWER, None, *lag, answers=False)
        if quorum is None:
            return ControllerSight(node_id, "no leader")
        voters = {each.replica_id for each in quorum.current_voters}
        role = "follower" if node_id in voters else "observer"
        role = "leader" if node_id == quorum.leader_id else role
        return ControllerSight(node_id, role, quorum.leader_epoch, *lag)

    def _broker(self, node_id: int, answers: Answers) -> BrokerSight:
        size = answers.get(("sizes", node_id))
        counted = None if size is None else Counted(time.monotonic(), None, size)
        _, bytes_ = self._rates.of(node_id, counted)
        if ("cluster", node_id) in self._unheard and size is None:
            return BrokerSight(node_id, NO_ANSWER, answers=False)
        is_away = self._brokers[node_id].is_fenced or is_fenced(self._follower.state, node_id)
        return BrokerSight(node_id, "fenced" if is_away else "running", None, bytes_)


def _cluster_question(address: Address) -> Callable[[], DescribeClusterResponse]:
    """A controller tells the id alone: its description is of controllers, which others give."""

    def asked() -> DescribeClusterResponse:
        request = DescribeClusterRequest(include_fenced_brokers=True)
        told = ask(address, request, DescribeClusterResponse)
        if told.error_code is not ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            return told
        request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        return replace(ask(address, request, DescribeClusterResponse), brokers=())

    return asked


def _sizes_question(address: Address) -> Callable[[], int]:
    """All bytes in the logs of a broker."""

    def asked() -> int:
        told = ask(address, DescribeLogDirsRequest(), DescribeLogDirsResponse)
        topics = (topic for found in told.results for topic in found.topics)
        return sum(each.partition_size for topic in topics for each in topic.partitions)

    return asked
