"""Quorum mode and ZooKeeper mode differ only in a broker's membership in its cluster.

The membership tells a broker what the cluster looks like and what its replicas have to be, and has
the broker's ISR changes committed. quorum_membership.py follows the metadata log and asks its
controller. `broker.zk` has a session with ZooKeeper, and most of its designs obey commands of a
controller. Logs, the fetch path and clients are the same in both modes.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from broker.cluster import Incarnation
from broker.membership.controller_channel import ControllerChannel
from broker.membership.lifecycle import BrokerState
from broker.partition.leaders import IsrKeeper
from broker.parts import BrokerParts
from broker.replicas import Replicas
from controller.metadata.delta import MetadataDelta
from quorum.core.effects import Event, Request

__all__ = ["Handler", "Life", "Membership", "Metadata", "Timed"]

Handler = Callable[[Request, int], None]


class Timed(Protocol):
    """A timed part has something to do when its time has come."""

    def tick(self, now_ms: int) -> None: ...

    def deadline_ms(self) -> int | None: ...


class Life(Protocol):
    """A broker lives from the start of its process to an orderly end; see `state`."""

    state: BrokerState
    failure: str | None
    stop_by_ms: int | None  # when a controlled shutdown ends, even if the controller has not agreed
    lacks_consent: bool  # a controlled shutdown has ended without the controller's agreement

    def deadline_ms(self) -> int | None: ...

    def begin_shutdown(self, now_ms: int) -> None: ...

    def directory_failed(self, now_ms: int) -> None: ...

    def register_again(self, now_ms: int) -> None: ...

    def controller_changed(self, now_ms: int) -> None: ...


class Metadata(Protocol):
    @property
    def published_offset(self) -> int:
        """The offset of the last record in the image; without a log, how many changes were told."""
        ...


class Membership(Timed, Protocol):
    """A membership is whole when it is made: the broker is built on it."""

    @property
    def parts(self) -> BrokerParts: ...

    @property
    def controller(self) -> ControllerChannel: ...

    @property
    def incarnation(self) -> Incarnation: ...

    @property
    def lifecycle(self) -> Life: ...

    @property
    def metadata(self) -> Metadata: ...

    @property
    def replicas(self) -> Replicas: ...

    @property
    def isr_keeper(self) -> IsrKeeper: ...

    @property
    def news(self) -> deque[MetadataDelta]:
        """Changes of the cluster that do not say what our replicas have to be. The broker takes
        them."""
        ...

    @property
    def always_served(self) -> tuple[type, ...]:
        """Requests that do not wait for the broker to serve clients: it may wait for them."""
        ...

    def routes(self, routes: Mapping[type, Handler]) -> Mapping[type, Handler]:
        """The requests that are served, given those that any broker serves."""
        ...

    def ready_to_unfence(self, now_ms: int) -> None:
        """Every log is open: serve, if the cluster agrees."""
        ...

    def tick_lifecycle(self, now_ms: int) -> None:
        """Do what the life-cycle has due; whether the broker lives on is the first to be known."""
        ...

    def receive(self, event: Event, now_ms: int) -> None:
        """An event that is no answer to the broker: of the session."""
        ...
