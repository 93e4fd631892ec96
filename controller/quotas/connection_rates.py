"""How fast connections may come: to one listener, to the node, and from one address.

A connection beyond the rate of a listener, or of the node, is not read until its turn has come. One
beyond the rate of its address is closed, after as long as the address should have waited: it does
not count then. Listeners of nodes wait for their own rates only: a flood of clients must not keep
brokers from each other and from the controller.

Unlike Kafka's, which does not accept before a connection's turn has come, a client is connected
meanwhile; it is in Kafka, too, by the operating system. And its turn comes when it would if all
came one after another, however many they are.

Source: KIP-612; Kafka's ConnectionQuotas.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.metadata.config_keys import BROKER_KEYS, problem
from controller.metadata.configs import broker_levels
from controller.metadata.image import MetadataImage
from controller.quotas.client_rates import ClientRates
from controller.quotas.limits import Limit, Limits
from controller.quotas.sampled_rate import Windows
from wire.admission import Admission
from wire.primitives import INT32_MAX

__all__ = ["CREATION_RATE", "ConnectionRates", "ListenerRates"]

CREATION_RATE = "max.connection.creation.rate"
_ADDRESS_KEY = "connection_creation_rate"
_EVERYWHERE = ""  # no listener has that name


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerRates:
    """Where the rates of listeners are set: for this node, in the metadata and beneath it."""

    node_id: int
    static: Mapping[str, str]
    protected: frozenset[str]  # listeners that do not wait for the rate of the node

    def bound(self, image: MetadataImage, listener: str) -> int | None:
        """Connections a second; None: as many as come."""
        name = CREATION_RATE
        if listener != _EVERYWHERE:
            name = f"listener.name.{listener.lower()}.{CREATION_RATE}"
        levels = broker_levels(image, [name], broker_id=self.node_id, static=self.static)
        value = next((level.value for level in levels), None)
        if value is None or problem(BROKER_KEYS[CREATION_RATE], value) is not None:
            return None
        return None if int(value) == INT32_MAX else int(value)


class ConnectionRates:
    def __init__(self, windows: Windows, listeners: ListenerRates) -> None:
        self._listeners = listeners
        self._rates = ClientRates(windows)
        self._addresses = ClientRates(windows, throttle_max_ms=windows.length_ms)
        self._limits = Limits({})
        self._image = MetadataImage()
        self._bounds: dict[str, int | None] = {}  # of listeners, as the image has them

    def connected(self, image: MetadataImage, listener: str, host: str, now_ms: int) -> Admission:
        self._obey(image)
        delay_ms = self._delay_ms(listener, now_ms)
        bound = self._limits.of_address(_ADDRESS_KEY, host) if self._limits.quotas else None
        if bound is not None:
            refused_ms = self._addresses.tried(Limit(bound, (host, None)), now_ms)
            if refused_ms > 0:
                return Admission(refused_ms, is_refused=True)
        return Admission(delay_ms)

    def _obey(self, image: MetadataImage) -> None:
        if image.configs is not self._image.configs:
            self._bounds.clear()
        if image.client_quotas is not self._limits.quotas:
            self._limits = Limits(image.client_quotas)
        self._image = image

    def _delay_ms(self, listener: str, now_ms: int) -> int:
        is_protected = listener in self._listeners.protected
        names = (listener,) if is_protected else (_EVERYWHERE, listener)
        return max(self._used(name, now_ms) for name in names)

    def _used(self, name: str, now_ms: int) -> int:
        if name not in self._bounds:
            self._bounds[name] = self._listeners.bound(self._image, name)
        bound = self._bounds[name]
        if bound is None:
            return 0
        return self._rates.used(1, Limit(bound, (name, None)), now_ms)
