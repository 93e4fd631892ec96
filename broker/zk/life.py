"""ZooKeeper sees the life of a broker as an ephemeral node; it may end in a controlled shutdown.

A broker registers once it knows its replicas and their logs are open. A lost session takes the
registration with it; the next session begins as the process did. An earlier life of this broker may
still have its node. It goes with its session, and is waited for.

A controlled shutdown asks the controller to move leaderships away first, a few times at most.
Without a controller, the end of the session gives them up.

`ZkLife` is told what has happened, and returns what the broker has to do about its registration.
The membership does that, as it also knows what comes before and after it.

Source: seed 000, E; seed 001, "broker join" and "controlled shutdown".
"""

from broker.cluster import Incarnation
from broker.config import BrokerConfig
from broker.membership.controller_channel import ControllerChannel
from broker.membership.lifecycle import ALLOWED, BrokerState
from broker.parts import BrokerParts
from controller.zk.zk_metadata import ensure_roots
from quorum.core.effects import Event, body_of, earliest
from quorum.zookeeper.zk_procedures import Procedure, one
from wire.errors import ErrorCode
from wire.zk import paths
from wire.zk.control_rpc import ControlledShutdownRequest, ControlledShutdownResponse
from wire.zk.designs import Design, Routing
from wire.zk.session import Create, Created, Exists, Found, Session
from wire.zk.znodes import BrokerRegistration

__all__ = ["ZkLife"]

_RETRY_MS = 50  # an earlier life's node, or no controller yet
_SHUTDOWN_ATTEMPTS = 3  # controlled.shutdown.max.retries


class ZkLife:
    def __init__(
        self,
        design: Design,
        parts: BrokerParts,
        *,
        controller: ControllerChannel,
        incarnation: Incarnation,
        session: Session,
    ) -> None:
        self._design = design
        self._config = parts.config
        self._session = session
        self._controller = controller
        self._incarnation = incarnation
        self._outbox = parts.outbox
        self.state = BrokerState.NOT_RUNNING
        self.failure: str | None = None
        self._session_id = 0  # that we are, or will be, registered in
        self._is_registered = False
        self._is_recovered = False
        self._is_ready = False
        self._now_ms = 0
        self._next_try_ms: int | None = None
        self.stop_by_ms: int | None = None
        self.lacks_consent = False
        self._next_goodbye_ms: int | None = None
        self._goodbyes = 0

    # --- the session --------------------------------------------------------------------------

    def session_changed(self, now_ms: int) -> bool:
        """Returns whether a new session has begun, in which the broker has to start anew."""
        self._now_ms = now_ms
        if not self._session.is_connected or self._session.id == self._session_id:
            return False
        self._session_id = self._session.id
        self._is_registered = False
        self._is_recovered = self._is_ready = False
        return True

    def start(self) -> Procedure[None]:
        """The beginning of on_broker_startup()."""
        if self.state is BrokerState.NOT_RUNNING:
            self._become(BrokerState.STARTING)
        yield from ensure_roots(self._design)

    def recovered(self) -> bool:
        """The broker knows its replicas.

        Returns whether it has to register now; if not, it registers when their logs are open.
        """
        self._is_recovered = True
        if self.state is BrokerState.STARTING:
            self._become(BrokerState.RECOVERY)
        return self._design.routing is Routing.UPDATE_METADATA or self._is_ready

    def ready_to_unfence(self, now_ms: int) -> bool:
        """All logs are open. Where the controller names our replicas, we are registered by then.

        Returns whether the broker has to register now.
        """
        self._now_ms = now_ms
        if not self._is_recovered or self._is_ready or self.state is BrokerState.SHUTTING_DOWN:
            return False
        self._is_ready = True
        self.run_if_ready()
        return not self._is_registered and self.state is not BrokerState.NOT_RUNNING

    def register(self) -> Procedure[bool]:
        """Returns whether the broker has become registered.

        If not, it was registered before, or it is tried again later.
        """
        if self._is_registered:
            return False
        path = paths.broker(self._config.node_id)
        data = _registration_of(self._config, self._now_ms).encode()
        result = yield from one(Create(path=path, data=data, is_ephemeral=True))
        found = yield from one(Exists(path=path))
        is_ours = isinstance(found, Found) and found.stat.ephemeral_owner == self._session.id
        if not isinstance(found, Found) or not is_ours:
            self._next_try_ms = self._now_ms + _RETRY_MS
            return False
        assert isinstance(result, Created) or is_ours, result
        self._is_registered = True
        self._incarnation.registered_epoch = found.stat.czxid  # our generation
        self._outbox.trace("registered", broker_epoch=found.stat.czxid)
        return True

    def run_if_ready(self) -> None:
        """Run, if the broker is registered and its logs are open."""
        if self._is_registered and self._is_ready and self.state is BrokerState.RECOVERY:
            self._become(BrokerState.RUNNING)

    def _become(self, state: BrokerState, **about: object) -> None:
        assert state in ALLOWED[self.state], (self.state, state)
        self._outbox.trace("broker-state", state=state.name, was=self.state.name, **about)
        self.state = state

    # --- what quorum mode tells its controller, and nobody here -------------------------------

    def directory_failed(self, now_ms: int) -> None:
        """The designs know no directories: a replica whose directory failed leads until it is
        stopped."""

    def register_again(self, now_ms: int) -> None:
        """A registration says all that there is to say."""

    def controller_changed(self, now_ms: int) -> None:
        """The goodbye goes to whoever is the controller when it is tried again."""

    # --- goodbye ------------------------------------------------------------------------------

    def begin_shutdown(self, now_ms: int) -> None:
        self._now_ms = now_ms
        says_goodbye = self._design.has_controller and self._config.controlled_shutdown_enable
        if self.state is BrokerState.RUNNING and says_goodbye:
            timeout_ms = self._config.controlled_shutdown_timeout_ms
            self.stop_by_ms = now_ms + timeout_ms
            self._become(BrokerState.PENDING_CONTROLLED_SHUTDOWN, within_ms=timeout_ms)
            self._ask_to_leave(now_ms)
        elif self.state not in (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN):
            self._leave()

    def _leave(self) -> None:
        self.stop_by_ms = self._next_goodbye_ms = self._next_try_ms = None
        self._become(BrokerState.SHUTTING_DOWN)

    def _ask_to_leave(self, now_ms: int) -> None:
        request = ControlledShutdownRequest(
            broker_id=self._config.node_id, broker_generation=self._incarnation.broker_epoch
        )
        sent = self._controller.ask(
            request,
            channel="controlled-shutdown",
            timeout_ms=self._config.session_timeout_ms,
            answered=self._goodbye_answered,
        )
        self._next_goodbye_ms = None if sent else now_ms + _RETRY_MS

    def _goodbye_answered(self, event: Event, now_ms: int) -> None:
        self._now_ms = now_ms
        if self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return
        body = body_of(event)
        if isinstance(body, ControlledShutdownResponse) and body.error_code is ErrorCode.NONE:
            self._goodbyes += 1
            if not body.remaining:
                self._leave()
                return
        if self._goodbyes >= _SHUTDOWN_ATTEMPTS:
            self.lacks_consent = True
            self._leave()
        else:
            self._next_goodbye_ms = now_ms + self._config.heartbeat_interval_ms

    # --- time ---------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> bool:
        """Returns whether the broker has to try again to register."""
        self._now_ms = now_ms
        if self.stop_by_ms is not None and now_ms >= self.stop_by_ms:
            self.lacks_consent = True
            self._leave()
            return False
        if self._next_goodbye_ms is not None and now_ms >= self._next_goodbye_ms:
            self._ask_to_leave(now_ms)
        if self._next_try_ms is None or now_ms < self._next_try_ms:
            return False
        self._next_try_ms = None
        return True

    def deadline_ms(self) -> int | None:
        return earliest(self.stop_by_ms, self._next_goodbye_ms, self._next_try_ms)


def _registration_of(config: BrokerConfig, now_ms: int) -> BrokerRegistration:
    """With every listener, as Kafka has had it since version 4 of this node."""
    first = next(
        (each for each in config.listeners if each.name == "PLAINTEXT"), config.listeners[0]
    )
    return BrokerRegistration(
        host=first.host,
        port=first.port,
        version=4,
        endpoints=tuple(f"{each.name}://{each.host}:{each.port}" for each in config.listeners),
        protocols={each.name: "PLAINTEXT" for each in config.listeners},
        rack=config.rack,
        timestamp_ms=now_ms,
    )
