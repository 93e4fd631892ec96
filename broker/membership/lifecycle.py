"""The controller sees the life of a broker as a registration, heartbeats and an orderly shutdown.

The life-cycle decides when to send to the controller and what to claim, and in which state that
leaves the broker. It never decides that the broker is fenced or leads: the metadata log does.

A STALE_BROKER_EPOCH is an ordinary failure. A broker does not register again by itself: that
would make it a new incarnation, whose log is taken to be possibly shorter.

Source: KIP-631; Kafka's BrokerLifecycleManager.
"""

from enum import IntEnum
from functools import partial
from random import Random

from broker.cluster import Incarnation
from broker.config import BrokerConfig
from broker.log_dirs import LogDirs
from broker.membership.controller_channel import ControllerChannel
from broker.membership.metadata import MetadataFollower
from quorum.core.effects import Event, body_of, earliest
from quorum.core.outbox import Answered, Outbox
from wire.errors import ErrorCode
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

__all__ = ["ALLOWED", "BrokerState", "Lifecycle", "next_state", "registration_backoff_ms"]


class BrokerState(IntEnum):
    """The values are those of Kafka's BrokerState metric."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


ALLOWED = {
    BrokerState.NOT_RUNNING: {BrokerState.STARTING, BrokerState.SHUTTING_DOWN},
    BrokerState.STARTING: {BrokerState.RECOVERY, BrokerState.SHUTTING_DOWN},
    BrokerState.RECOVERY: {BrokerState.RUNNING, BrokerState.SHUTTING_DOWN},
    BrokerState.RUNNING: {BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN},
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: {BrokerState.SHUTTING_DOWN},
    BrokerState.SHUTTING_DOWN: set(),
}

_STARTING_HEARTBEAT_MS = 10  # while we wait to have caught up
_FIRST_SHUTDOWN_HEARTBEAT_MS = 50
_BACKOFF_FIRST_MS = 100
_NO_CONTROLLER_BACKOFF_MS = 50  # nobody was asked: nobody is spared by waiting longer
# Asking again cannot help: the operator must.
_PERMANENT = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_REGISTRATION,
)


def next_state(state: BrokerState, answer: BrokerHeartbeatResponse) -> BrokerState:
    """What an answer to a heartbeat makes of a broker."""
    match state:
        case BrokerState.STARTING if answer.is_caught_up:
            return BrokerState.RECOVERY
        case BrokerState.RECOVERY if not answer.is_fenced:
            return BrokerState.RUNNING
        case BrokerState.PENDING_CONTROLLED_SHUTDOWN if answer.should_shut_down:
            return BrokerState.SHUTTING_DOWN
        case _:
            return state


def registration_backoff_ms(failures: int, *, ceiling_ms: int, random: Random) -> int:
    """Twice as long after every failure, give or take 2 %, so that brokers do not march in step."""
    base = min(_BACKOFF_FIRST_MS << min(failures - 1, 20), ceiling_ms)
    return int(base * random.uniform(0.98, 1.02))


class Lifecycle:
    def __init__(
        self,
        *,
        config: BrokerConfig,
        controller: ControllerChannel,
        outbox: Outbox,
        random: Random,
        incarnation: Incarnation,
        metadata: MetadataFollower,
        log_dirs: LogDirs,
    ) -> None:
        self._config = config
        self._controller = controller
        self._outbox = outbox
        self._random = random
        self._incarnation = incarnation
        self._metadata = metadata
        self._log_dirs = log_dirs
        self.state = BrokerState.NOT_RUNNING
        self.refusal: ErrorCode | None = None  # of the last registration
        self.failure: str | None = None  # why the broker cannot go on, for people
        self._is_registered = False
        self._must_amend = False  # the registration, which holds less than it may by now
        self._may_unfence = False
        self._in_flight = False
        self._request_number = 0  # of the last request: an answer to an earlier one is ignored
        self._next_send_ms = 0
        self._failures = 0
        self._register_by_ms = 0
        self.stop_by_ms: int | None = None
        self.lacks_consent = False
        self._report_by_ms: int | None = None  # a failed directory, to the controller
        self._had_answer_in_shutdown = False

    @property
    def broker_epoch(self) -> int:
        """The epoch of the last registration of this process; -1 while none is known.

        The metadata may know a later one than the answer named: 1. This process asks twice, because
        the first answer is late. 2. Its first request registers it, and is answered. 3. A request
        of the process before it, late too, takes its place. 4. The second request registers it
        again with a new epoch, and nobody waits for that answer any more. All heartbeats with the
        first epoch would be refused.
        """
        published = self._incarnation.published_epoch
        registered = self._incarnation.registered_epoch
        return registered if published is None else max(registered, published)

    # --- what the broker tells --------------------------------------------------------------

    def ready_to_unfence(self, now_ms: int) -> None:
        """The first image is published and every log is open: serve, if the controller agrees."""
        if not self._may_unfence:
            self._may_unfence = True
            if self._is_registered:
                self._send_now(now_ms)

    def begin_shutdown(self, now_ms: int) -> None:
        """Leave in order: let the controller move leaderships away first. Bounded in time."""
        if self.state is BrokerState.RUNNING and self._config.controlled_shutdown_enable:
            timeout_ms = self._config.controlled_shutdown_timeout_ms
            self.stop_by_ms = now_ms + timeout_ms
            self._become(BrokerState.PENDING_CONTROLLED_SHUTDOWN, within_ms=timeout_ms)
            self._send_now(now_ms)
        elif self.state not in (
            BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            BrokerState.SHUTTING_DOWN,
        ):
            self._become(BrokerState.SHUTTING_DOWN)

    def directory_failed(self, now_ms: int) -> None:
        """Report it: until the controller knows, it may have us lead what we have lost."""
        if self._report_by_ms is None:
            self._report_by_ms = now_ms + self._config.log_dir_failure_timeout_ms
        if self._is_registered and self.state is not BrokerState.SHUTTING_DOWN:
            self._send_now(now_ms)

    def register_again(self, now_ms: int) -> None:
        """Our registration lacks what the metadata.version has no room for until now.

        The same process keeps its epoch and its standing. Until it is answered, heartbeats wait: if
        they wait for too long, the controller fences us, as it would without any.
        """
        if self._is_registered and self.state is not BrokerState.SHUTTING_DOWN:
            self._must_amend = True
            self._send_now(now_ms)

    def controller_changed(self, now_ms: int) -> None:
        """Another controller is active, and the old one may never answer: ask the new one at once.

        Our session already runs by the clock of the new controller. A backoff that has grown while
        the old one was silent could outlast that session.
        """
        is_owed = self._in_flight or self._failures > 0
        if is_owed and self.state is not BrokerState.SHUTTING_DOWN:
            self._failures = 0
            self._send_now(now_ms)

    def _send_now(self, now_ms: int) -> None:
        self._in_flight = False
        self._request_number += 1
        self._next_send_ms = now_ms
        self.tick(now_ms)

    # --- time -------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        if self.state is BrokerState.NOT_RUNNING:
            self._register_by_ms = now_ms + self._config.initial_registration_timeout_ms
            self._become(BrokerState.STARTING)
        if self.state is BrokerState.SHUTTING_DOWN:
            return
        if self.stop_by_ms is not None and now_ms >= self.stop_by_ms:
            self.lacks_consent = True
            self._become(BrokerState.SHUTTING_DOWN)
        elif self._report_by_ms is not None and now_ms >= self._report_by_ms:
            self._give_up("the controller has not heard in time of a failed data directory", now_ms)
        elif not self._is_registered and now_ms >= self._register_by_ms:
            self._give_up("could not register with the controllers in time", now_ms)
        elif not self._in_flight and now_ms >= self._next_send_ms:
            self._send(now_ms)

    def deadline_ms(self) -> int | None:
        if self.state is BrokerState.SHUTTING_DOWN:
            return None
        awaits_epoch = not self._is_registered and self.state is not BrokerState.NOT_RUNNING
        return earliest(
            None if self._in_flight else self._next_send_ms,
            self._register_by_ms if awaits_epoch else None,
            self.stop_by_ms,
            self._report_by_ms,
        )

    def _become(self, state: BrokerState, **about: object) -> None:
        assert state in ALLOWED[self.state], (self.state, state)
        self._outbox.trace("broker-state", state=state.name, was=self.state.name, **about)
        self.state = state

    # --- requests ---------------------------------------------------------------------------

    def _send(self, now_ms: int) -> None:
        if self._is_registered and not self._must_amend:
            self._ask(self._heartbeat(), self._heartbeat_answered, now_ms)
        else:
            self._ask(self._registration(), self._registration_answered, now_ms)

    def _ask(self, body: object, answered: Answered, now_ms: int) -> None:
        self._request_number += 1
        sent = self._controller.ask(
            body,
            channel="heartbeat",
            timeout_ms=max(self._config.session_timeout_ms // 2, 1),
            answered=partial(self._deliver, self._request_number, answered),
        )
        self._in_flight = sent
        if not sent:
            self._next_send_ms = now_ms + _NO_CONTROLLER_BACKOFF_MS

    def _deliver(self, request_number: int, answered: Answered, event: Event, now_ms: int) -> None:
        if request_number != self._request_number or self.state is BrokerState.SHUTTING_DOWN:
            return
        self._in_flight = False
        answered(event, now_ms)

    def _registration(self) -> BrokerRegistrationRequest:
        config = self._config
        return BrokerRegistrationRequest(
            broker_id=config.node_id,
            cluster_id=config.cluster_id,
            incarnation_id=self._incarnation.id,
            listeners=config.listeners,
            features=config.features,
            rack=config.rack,
            log_dirs=tuple(sorted(config.log_dirs)),
            previous_broker_epoch=config.previous_broker_epoch,
        )

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata.published_offset,
            want_fence=not self._may_unfence,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=self._log_dirs.failed,
        )

    # --- answers ----------------------------------------------------------------------------

    def _registration_answered(self, event: Event, now_ms: int) -> None:
        body = body_of(event)
        if not isinstance(body, BrokerRegistrationResponse):
            self._failed(now_ms, "registration")
        elif body.error_code in _PERMANENT and not self._is_registered:
            self._give_up(f"the controller refuses this broker: {body.error_code.name}", now_ms)
        elif body.error_code in _PERMANENT:
            self._must_amend = False  # it serves as well as before
            self._failed(now_ms, "registration", error=body.error_code.name)
        elif body.error_code is not ErrorCode.NONE:
            self.refusal = body.error_code
            self._failed(now_ms, "registration", error=body.error_code.name)
        else:
            self._is_registered = True
            self._must_amend = False
            self.refusal = None
            self._incarnation.registered_epoch = body.broker_epoch
            self._outbox.trace("registered", broker_epoch=body.broker_epoch)
            self._succeeded(now_ms, _STARTING_HEARTBEAT_MS)

    def _heartbeat_answered(self, event: Event, now_ms: int) -> None:
        body = body_of(event)
        if not isinstance(body, BrokerHeartbeatResponse):
            self._failed(now_ms, "heartbeat")
            return
        if body.error_code is not ErrorCode.NONE:
            self._failed(now_ms, "heartbeat", error=body.error_code.name)
            return
        self._report_by_ms = None
        state = next_state(self.state, body)
        if state is not self.state:
            self._become(state)
        self._succeeded(now_ms, self._pace_ms())

    def _pace_ms(self) -> int:
        match self.state:
            case BrokerState.STARTING:
                return _STARTING_HEARTBEAT_MS
            case BrokerState.RECOVERY if self._may_unfence:
                return _STARTING_HEARTBEAT_MS
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN if not self._had_answer_in_shutdown:
                self._had_answer_in_shutdown = True
                return min(_FIRST_SHUTDOWN_HEARTBEAT_MS, self._config.heartbeat_interval_ms)
            case _:
                return self._config.heartbeat_interval_ms

    def _succeeded(self, now_ms: int, pace_ms: int) -> None:
        self._failures = 0
        self._next_send_ms = now_ms + pace_ms

    def _failed(self, now_ms: int, what: str, error: str = "no answer") -> None:
        self._failures += 1
        backoff_ms = registration_backoff_ms(
            self._failures, ceiling_ms=self._config.session_timeout_ms, random=self._random
        )
        self._next_send_ms = now_ms + backoff_ms
        self._outbox.trace(f"{what}-failed", error=error, failures=self._failures)

    def _give_up(self, reason: str, now_ms: int) -> None:
        if self.refusal is not None:
            reason = f"{reason}: {self.refusal.name}"
        if self.refusal is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            reason += f"; another broker {self._config.node_id} is alive: give this one its own id"
        self.failure = reason
        self._become(BrokerState.SHUTTING_DOWN)
