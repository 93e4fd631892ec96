"""How a broker belongs to its cluster: all in which quorum and ZooKeeper mode differ.

A broker is told by its membership what the cluster looks like and what its replicas have to be, and
has it make its ISR changes true. `broker.quorum_membership` follows the metadata log and asks its
controller; `broker.zk` has a session with ZooKeeper and is commanded. Everything else, the logs,
the fetch path, the clients, is the broker's and the same.
"""

from collections.abc import Callable, Mapping
from typing import Protocol
from uuid import UUID

from broker.alterations import Asker
from broker.cluster import Cluster
from broker.config import BrokerConfig
from broker.controller_channel import ControllerChannel, Whereabouts
from broker.leaders import IsrKeeper
from broker.lifecycle import BrokerState
from broker.log_dirs import LogDirs
from broker.outbox import Outbox
from broker.partition import IsrRules
from broker.replicas import Replicas
from controller.metadata.delta import MetadataDelta
from quorum.core.effects import Event, Request

__all__ = ["BrokerParts", "Handler", "Life", "Membership", "Metadata", "Timed"]

Handler = Callable[[Request, int], None]


class Timed(Protocol):
    """A part with something to do when its time has come."""

    def tick(self, now_ms: int) -> None: ...

    def deadline_ms(self) -> int | None: ...


class Life(Timed, Protocol):
    """From the start of the process to its orderly end."""

    state: BrokerState
    failure: str | None
    incarnation_id: UUID

    @property
    def broker_epoch(self) -> int: ...

    def ready_to_unfence(self, now_ms: int) -> None:
        """Every log is open: serve, if the cluster agrees."""
        ...

    def begin_shutdown(self, now_ms: int) -> None: ...

    def directory_failed(self, now_ms: int) -> None: ...

    def register_again(self, now_ms: int) -> None: ...

    def controller_changed(self, now_ms: int) -> None: ...


class Metadata(Protocol):
    @property
    def published_offset(self) -> int:
        """The offset of the last record in the image; without a log, how many changes were told."""
        ...


class BrokerParts(Protocol):
    """What a membership has of its broker. `replicas` are there after `join`."""

    config: BrokerConfig
    outbox: Outbox
    controller: ControllerChannel
    asker: Asker
    cluster: Cluster
    log_dirs: LogDirs
    replicas: Replicas

    def entered(self, state: BrokerState, now_ms: int, /) -> None:
        """The life-cycle is in another state."""
        ...

    def show(self, delta: MetadataDelta, now_ms: int) -> None:
        """The cluster has changed."""
        ...


class Membership(Timed, Protocol):
    """`join` is called once, when the parts of the broker are there."""

    @property
    def whereabouts(self) -> Whereabouts:
        """Where the controller is; known before `join`."""
        ...

    @property
    def lifecycle(self) -> Life: ...

    @property
    def metadata(self) -> Metadata: ...

    @property
    def isr_keeper(self) -> IsrKeeper: ...

    @property
    def isr_rules(self) -> IsrRules: ...

    @property
    def always_served(self) -> tuple[type, ...]:
        """Requests that do not wait for the broker to serve clients: it may wait for them."""
        ...

    def join(self, broker: BrokerParts) -> None: ...

    def routes(self, routes: Mapping[type, Handler]) -> Mapping[type, Handler]:
        """The requests that are served, given those that any broker serves."""
        ...

    def receive(self, event: Event, now_ms: int) -> None:
        """An event that is no answer to the broker: of the session."""
        ...
