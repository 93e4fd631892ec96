"""A rule says what brokers may tell of logs that are being rewritten.

D-TEL   no replica tells others where its log ends while that log is being truncated or begun anew:
        a follower does not fetch, and nobody leads

A batch that is appended meanwhile waits for that, and goes with a process that dies.
"""

from collections.abc import Callable

from broker.partition.partition import FollowerOf, LeaderOf
from jepsen_like.sim.assemblies.cluster.nodes import ClusterNode
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect, ResetLog, Send, Truncate
from wire.messages.fetching import FetchRequest

__all__ = ["ToldEnds"]


class ToldEnds(Observer):
    """Raises `Violation`."""

    performing_kinds = (FetchRequest,)

    def __init__(self, node_of: Callable[[Host], ClusterNode]) -> None:
        self._node_of = node_of

    def performing(self, host: Host, effect: Effect) -> None:
        broker = self._node_of(host).broker
        if broker is None or not isinstance(effect, Send):
            return
        request = effect.body
        assert isinstance(request, FetchRequest), request
        asked = {
            (topic.topic_id, partition.partition)
            for topic in request.topics
            for partition in topic.partitions
        }
        for partition in broker.replicas:
            is_asked = (partition.topic_id, partition.index) in asked
            if is_asked and isinstance(partition.role, FollowerOf):
                _is_not_rewritten(host, partition.name, "fetches")

    def settled(self, host: Host, effects: list[Effect]) -> None:
        broker = self._node_of(host).broker
        if broker is None:
            return
        for name, stored in host.disk.logs.items():
            if stored.waiting:
                partition = broker.replicas.of_log(name)
                if partition is not None and isinstance(partition.role, LeaderOf):
                    _is_not_rewritten(host, name, "leads")


def _is_not_rewritten(host: Host, name: str, tells: str) -> None:
    stored = host.disk.logs.get(name)
    for waiting in () if stored is None else stored.waiting:
        if isinstance(waiting.effect, Truncate | ResetLog):
            raise Violation("D-TEL", f"{name}: {host.node_id} {tells} during {waiting.effect}")
