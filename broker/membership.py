"""How a broker belongs to its cluster: all in which quorum and ZooKeeper mode differ.

A broker is told by its membership what the cluster looks like and what its replicas have to be, and
has it make its ISR changes true. `broker.quorum_membership` follows the metadata log and asks its
controller; `broker.zk.membership` has a session with ZooKeeper and is commanded. Everything else,
the logs, the fetch path, the clients, is the broker's and the same.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from broker.controller_channel import Whereabouts
from broker.isr_rules import IsrKeeper, IsrRules
from broker.lifecycle import BrokerState
from quorum.core.effects import Event, Request

if TYPE_CHECKING:
    from broker.broker import Broker

__all__ = ["Handler", "Life", "Membership", "Metadata", "Timed"]

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
        """Of the last record in the image; without a log, how many changes were told."""
        ...


class Membership(Timed, Protocol):
    """`join` is called once, when the parts of the broker are there."""

    @property
    def whereabouts(self) -> Whereabouts:
        """Of the controller; known before `join`."""
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

    def join(self, broker: "Broker") -> None: ...

    def routes(self, routes: Mapping[type, Handler]) -> Mapping[type, Handler]:
        """The requests that are served, given those that any broker serves."""
        ...

    def receive(self, event: Event, now_ms: int) -> None:
        """An event that is no answer to the broker: of the session."""
        ...
