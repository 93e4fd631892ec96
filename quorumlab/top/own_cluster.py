"""A cluster of ours, in a directory: asked through its nodes' pages.

Processes that are gone are known, too. Requests are those of clients and other nodes; bytes are
those received and sent for requests and answers.
"""

from collections.abc import Callable, Collection
from typing import Any

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.client_properties import broker_settings, controller_settings
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
    metadata_question,
    partitions_in,
    quorum_in,
    quorum_question,
)
from quorumlab.top.cluster_view import BrokerSight, ClusterView
from quorumlab.top.log_follower import LogFollower

__all__ = ["OwnCluster"]


class OwnCluster:
    def __init__(self, cluster: LocalCluster, follower: LogFollower) -> None:
        self._cluster = cluster
        self._of_brokers = broker_settings(cluster.layout)
        self._of_controllers = controller_settings(cluster.layout)
        self._follower = follower
        self._panel = Panel()
        self._rates = Rates()
        self._turn = 0  # of brokers to be asked for the partitions

    def look(self) -> ClusterView:
        layout, running = self._cluster.layout, self._cluster.running()
        answers = self._panel.ask(self._questions(running))
        quorum, _ = quorum_in(answers)
        pulses = {node_id: told for (kind, node_id), told in answers.items() if kind == "pulse"}
        active, epoch = active_in(pulses)
        return ClusterView(
            cluster=f"{layout.cluster_id} in {layout.directory}",
            active_controller=active,
            epoch=epoch,
            controllers=[
                controller_sight(node.id, pulses.get(node.id), self._gone(node, running), quorum)
                for node in layout.controllers
            ],
            brokers=[
                self._broker(node.id, pulses.get(node.id), self._gone(node, running))
                for node in layout.brokers
            ],
            partitions=partitions_in(self._follower, answers),
        )

    def _questions(self, running: Collection[int]) -> Questions:
        questions: Questions = {}
        nodes = [node for node in self._cluster.layout.nodes if node.id in running]
        for node in nodes:
            questions["pulse", node.id] = self._pulse(node)
            if node.controller_port is not None:
                address = Address(node.host, node.controller_port, self._of_controllers)
                questions["quorum", node.id] = quorum_question(address)
        brokers = [node for node in nodes if node.is_broker]
        if self._follower.state is None and brokers:
            self._turn += 1
            broker = brokers[self._turn % len(brokers)]
            questions["metadata", broker.id] = metadata_question(
                Address(broker.host, broker.port, self._of_brokers)
            )
        return questions

    def _pulse(self, node: NodeLayout) -> Callable[[], Any]:
        return lambda: self._cluster.page(node, "/v1/pulse", LIMIT_SECONDS) or None

    def _gone(self, node: NodeLayout, running: Collection[int]) -> str:
        """Why it has not answered, if it has not."""
        if node.id in running:
            return NO_ANSWER
        return "dead" if node.pid_file.exists() else "stopped"

    def _broker(self, node_id: int, pulse: Any, gone: str) -> BrokerSight:
        now = None if pulse is None else counted(pulse)
        requests, bytes_ = self._rates.of(node_id, now)
        if pulse is None:
            return BrokerSight(node_id, gone, answers=False)
        state = pulse["broker_state"]
        if state == "running" and is_fenced(self._follower.state, node_id):
            state = "fenced"
        return BrokerSight(node_id, state, requests, bytes_)
