"""Where the controller is when there is none: what one would do, each broker's own process does."""

from broker.config import BrokerConfig
from quorum.core.types import NO_EPOCH, Endpoint, LeaderAndEpoch

__all__ = ["OwnWhereabouts"]


class OwnWhereabouts:
    kraft_version = 0

    def __init__(self) -> None:
        self._endpoint: Endpoint | None = None

    def are_of(self, config: BrokerConfig) -> None:
        name = config.inter_broker_listener_name
        found = next((each for each in config.listeners if each.name == name), None)
        if found is not None:
            self._endpoint = Endpoint(config.node_id, found.host, found.port)

    @property
    def leader(self) -> LeaderAndEpoch:
        known = None if self._endpoint is None else self._endpoint.node_id
        return LeaderAndEpoch(known, NO_EPOCH)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return self._endpoint
