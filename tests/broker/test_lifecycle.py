"""A broker and the controller: registration, heartbeats, retries, leaving."""

from dataclasses import dataclass, field
from random import Random
from uuid import UUID

import pytest

from broker.config import BrokerConfig
from broker.membership.lifecycle import BrokerState, next_state, registration_backoff_ms
from broker.membership.quorum_membership import QuorumMembership
from broker.parts import BrokerParts
from controller.metadata.image import BrokerImage, MetadataImage
from quorum.core.effects import Event, Failure, RequestFailed, Response, Send
from quorum.core.types import Endpoint, LeaderAndEpoch
from wire.errors import ErrorCode
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

EPOCH = 17


@dataclass
class Controllers:
    """Which controller is active; nothing else of the metadata log is needed here."""

    leader_id: int | None = 100
    node_id: int = 1
    high_watermark: int | None = None
    end_offset: int = 0
    kraft_version: int = 0

    @property
    def leader(self) -> LeaderAndEpoch:
        return LeaderAndEpoch(self.leader_id, 1)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return Endpoint(node_id, "controller", 9093)

    def append(self, batch: bytes, now_ms: int) -> int:
        raise NotImplementedError

    def resign(self, now_ms: int) -> None:
        raise NotImplementedError

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return ()

    def raise_kraft_version(self, version: int, now_ms: int) -> str | None:
        raise NotImplementedError


@dataclass
class Life:
    """A life-cycle whose requests are answered by hand."""

    controllers: Controllers = field(default_factory=Controllers)
    now_ms: int = 1000
    is_controlled: bool = True

    def __post_init__(self) -> None:
        config = BrokerConfig(
            node_id=1,
            cluster_id="c",
            listeners=(),
            log_dirs=(UUID(int=9), UUID(int=4)),
            heartbeat_interval_ms=2000,
            session_timeout_ms=9000,
            initial_registration_timeout_ms=60_000,
            controlled_shutdown_enable=self.is_controlled,
            controlled_shutdown_timeout_ms=5000,
            previous_broker_epoch=3,
        )
        self.membership = QuorumMembership(BrokerParts.of(config), self.controllers, Random(5))
        self.outbox = self.membership.parts.outbox
        self.core = self.membership.lifecycle

    def publish(self, broker_epoch: int) -> None:
        """The metadata has this process under that broker epoch."""
        own = BrokerImage(
            id=1,
            epoch=broker_epoch,
            incarnation_id=self.membership.incarnation.id,
            end_points=(),
            features={},
            rack=None,
            fenced=True,
            in_controlled_shutdown=False,
            log_dirs=(),
            registered_at_offset=0,
        )
        self.membership.parts.cluster.publish(MetadataImage(brokers={1: own}))

    def sent(self) -> list[Send]:
        return [effect for effect in self.outbox.take() if isinstance(effect, Send)]

    def next(self) -> Send:
        """Pass the time until the next request."""
        due_ms = self.core.deadline_ms()
        assert due_ms is not None
        self.now_ms = max(self.now_ms, due_ms)
        self.core.tick(self.now_ms)
        (send,) = self.sent()
        return send

    def answer(self, send: Send, body: object) -> None:
        event: Event = Response(token=send.token, body=body)
        self.outbox.deliver(send.token, event, self.now_ms)

    def fail(self, send: Send) -> None:
        event = RequestFailed(token=send.token, failure=Failure.DISCONNECTED)
        self.outbox.deliver(send.token, event, self.now_ms)

    def registered(self) -> "Life":
        self.answer(self.next(), BrokerRegistrationResponse(broker_epoch=EPOCH))
        return self

    def running(self) -> "Life":
        self.registered()
        self.answer(self.next(), heartbeat(caught_up=True))
        self.core.ready_to_unfence(self.now_ms)
        (send,) = self.sent()
        self.answer(send, heartbeat(caught_up=True, fenced=False))
        assert self.core.state is BrokerState.RUNNING
        return self


def heartbeat(
    *,
    caught_up: bool = False,
    fenced: bool = True,
    shut_down: bool = False,
    error: ErrorCode = ErrorCode.NONE,
) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        error_code=error, is_caught_up=caught_up, is_fenced=fenced, should_shut_down=shut_down
    )


@pytest.mark.parametrize(
    ("state", "answer", "expected"),
    [
        (BrokerState.STARTING, heartbeat(), BrokerState.STARTING),
        (BrokerState.STARTING, heartbeat(caught_up=True), BrokerState.RECOVERY),
        (BrokerState.RECOVERY, heartbeat(caught_up=True), BrokerState.RECOVERY),
        (BrokerState.RECOVERY, heartbeat(fenced=False), BrokerState.RUNNING),
        (BrokerState.RUNNING, heartbeat(fenced=True), BrokerState.RUNNING),
        (BrokerState.RUNNING, heartbeat(shut_down=True), BrokerState.RUNNING),
        (
            BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            heartbeat(),
            BrokerState.PENDING_CONTROLLED_SHUTDOWN,
        ),
        (
            BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            heartbeat(shut_down=True),
            BrokerState.SHUTTING_DOWN,
        ),
    ],
)
def test_what_an_answer_makes_of_a_broker(
    state: BrokerState, answer: BrokerHeartbeatResponse, expected: BrokerState
) -> None:
    assert next_state(state, answer) is expected


def test_registration_tells_who_the_broker_is() -> None:
    life = Life()
    body = life.next().body

    assert isinstance(body, BrokerRegistrationRequest)
    assert body.incarnation_id == life.membership.incarnation.id
    assert body.log_dirs == (UUID(int=4), UUID(int=9))
    assert body.previous_broker_epoch == 3


def test_while_it_catches_up_a_broker_asks_every_ten_milliseconds_to_stay_fenced() -> None:
    life = Life().registered()
    at_ms = life.now_ms
    send = life.next()

    assert isinstance(send.body, BrokerHeartbeatRequest)
    assert (send.body.broker_epoch, send.body.want_fence) == (EPOCH, True)
    assert life.now_ms == at_ms + 10


def test_a_broker_that_is_ready_says_so_at_once() -> None:
    life = Life().registered()
    life.answer(life.next(), heartbeat(caught_up=True))
    life.membership.metadata.published_offset = 42

    life.core.ready_to_unfence(life.now_ms)

    (send,) = life.sent()
    assert isinstance(send.body, BrokerHeartbeatRequest)
    assert (send.body.want_fence, send.body.current_metadata_offset) == (False, 42)


def test_a_running_broker_beats_at_its_interval() -> None:
    life = Life().running()
    at_ms = life.now_ms
    life.next()
    assert life.now_ms == at_ms + 2000


def test_a_stale_epoch_is_retried_and_never_registers_again() -> None:
    life = Life().running()
    for _ in range(5):
        send = life.next()
        assert isinstance(send.body, BrokerHeartbeatRequest)
        life.answer(send, heartbeat(error=ErrorCode.STALE_BROKER_EPOCH))
    assert life.core.state is BrokerState.RUNNING


@pytest.mark.parametrize("is_published_first", [False, True])
def test_a_later_epoch_in_the_metadata_is_ours(is_published_first: bool) -> None:
    """Of a second registration of this process, whose answer nobody waited for any more."""
    life = Life()
    if is_published_first:
        life.publish(EPOCH + 3)
    life.registered()
    life.publish(EPOCH + 3)
    body = life.next().body
    assert isinstance(body, BrokerHeartbeatRequest)
    assert body.broker_epoch == EPOCH + 3


def test_a_registration_that_lacks_something_is_made_again_until_it_is_answered() -> None:
    life = Life().running()
    life.core.register_again(life.now_ms)
    (first,) = life.sent()
    assert isinstance(first.body, BrokerRegistrationRequest)
    assert first.body.incarnation_id == life.membership.incarnation.id
    life.fail(first)
    again = life.next()
    assert again.body == first.body
    life.answer(again, BrokerRegistrationResponse(broker_epoch=EPOCH))
    assert isinstance(life.next().body, BrokerHeartbeatRequest)
    assert life.core.state is BrokerState.RUNNING


def test_a_running_broker_lives_on_when_its_new_registration_is_refused() -> None:
    life = Life().running()
    life.core.register_again(life.now_ms)
    (send,) = life.sent()
    life.answer(send, BrokerRegistrationResponse(error_code=ErrorCode.INVALID_REGISTRATION))
    assert isinstance(life.next().body, BrokerHeartbeatRequest)
    assert life.core.state is BrokerState.RUNNING


def test_failures_back_off_up_to_the_session_timeout() -> None:
    waits = [
        registration_backoff_ms(failures, ceiling_ms=9000, random=Random(1))
        for failures in range(1, 12)
    ]
    assert 98 <= waits[0] <= 102
    assert 196 <= waits[1] <= 204
    assert 8820 <= waits[-1] <= 9180


def test_without_a_controller_it_looks_again_soon() -> None:
    life = Life(Controllers(leader_id=None))
    life.core.tick(life.now_ms)
    assert life.sent() == []
    life.controllers.leader_id = 100
    at_ms = life.now_ms
    life.next()
    assert life.now_ms == at_ms + 50


def test_a_broker_that_cannot_register_gives_up_in_the_end() -> None:
    life = Life()
    while life.core.state is not BrokerState.SHUTTING_DOWN:
        due_ms = life.core.deadline_ms()
        assert due_ms is not None
        life.now_ms = due_ms
        life.core.tick(life.now_ms)
        for send in life.sent():
            life.answer(
                send,
                BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION),
            )
    assert life.now_ms <= 1000 + 60_000 + 10_000
    assert life.core.failure is not None
    assert "DUPLICATE_BROKER_REGISTRATION" in life.core.failure


def test_a_foreign_cluster_is_no_place_to_wait() -> None:
    life = Life()
    error = ErrorCode.INCONSISTENT_CLUSTER_ID
    life.answer(life.next(), BrokerRegistrationResponse(error_code=error))

    assert life.core.state is BrokerState.SHUTTING_DOWN
    assert life.core.failure is not None
    assert "INCONSISTENT_CLUSTER_ID" in life.core.failure


def test_a_new_controller_is_asked_without_waiting_for_the_old_one() -> None:
    life = Life().running()
    old = life.next()
    life.core.controller_changed(life.now_ms)
    (new,) = life.sent()
    assert isinstance(new.body, BrokerHeartbeatRequest)

    life.fail(old)  # too late to matter
    life.answer(new, heartbeat(fenced=False))

    assert life.core.deadline_ms() == life.now_ms + 2000


def test_a_new_controller_does_not_wait_for_a_backoff_that_the_old_one_has_earned() -> None:
    life = Life().running()
    for _ in range(4):
        life.fail(life.next())
    due_ms = life.core.deadline_ms()
    assert due_ms is not None
    assert due_ms > life.now_ms + 700

    life.core.controller_changed(life.now_ms)
    (send,) = life.sent()
    assert isinstance(send.body, BrokerHeartbeatRequest)
    life.fail(send)

    due_ms = life.core.deadline_ms()
    assert due_ms is not None
    assert due_ms <= life.now_ms + 102


def test_leaving_asks_until_the_controller_agrees() -> None:
    life = Life().running()
    life.core.begin_shutdown(life.now_ms)
    (send,) = life.sent()
    assert isinstance(send.body, BrokerHeartbeatRequest)
    assert send.body.want_shut_down
    life.answer(send, heartbeat(fenced=False))
    at_ms = life.now_ms
    send = life.next()
    assert life.now_ms == at_ms + 50

    life.answer(send, heartbeat(shut_down=True))

    assert life.core.state is BrokerState.SHUTTING_DOWN
    assert life.core.deadline_ms() is None


def test_leaving_is_bounded_in_time() -> None:
    life = Life().running()
    life.core.begin_shutdown(life.now_ms)
    life.core.tick(life.now_ms + 5000)
    assert life.core.state is BrokerState.SHUTTING_DOWN


def test_a_broker_that_never_ran_leaves_at_once() -> None:
    life = Life().registered()
    life.core.begin_shutdown(life.now_ms)
    assert life.core.state is BrokerState.SHUTTING_DOWN


def test_leaving_without_control_asks_nobody() -> None:
    life = Life(is_controlled=False).running()
    life.core.begin_shutdown(life.now_ms)
    assert life.core.state is BrokerState.SHUTTING_DOWN
    assert life.sent() == []
