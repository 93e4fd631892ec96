"""Where the controller is: the broker that owns /controller, on the brokers' own listener."""

from collections.abc import Callable

from broker.cluster import Cluster
from broker.zk.view import View
from quorum.core.types import NO_EPOCH, Endpoint, LeaderAndEpoch

__all__ = ["ControllerWhereabouts"]


class ControllerWhereabouts:
    kraft_version = 0

    def __init__(self, controller_id: Callable[[], int]) -> None:
        self._controller_id = controller_id
        self._cluster: Cluster | None = None
        self._view: View | None = None

    def look_at(self, cluster: Cluster, view: View) -> None:
        self._cluster, self._view = cluster, view

    @property
    def leader(self) -> LeaderAndEpoch:
        known = self._controller_id()
        return LeaderAndEpoch(known if known >= 0 else None, NO_EPOCH)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        assert self._cluster is not None, "before the broker has joined"
        assert self._view is not None
        listener = self._cluster.config.inter_broker_listener_name
        endpoint = self._cluster.endpoint(node_id, listener)
        if endpoint is None:
            self._view.miss_broker(node_id)
        return endpoint
