"""Linearizable reads of the metadata: what is committed, from the controller that surely leads.

Other reads are answered by any controller from what it has applied, which may be old. These are
answered by the active one, once a majority has confirmed that it was that when it was asked.

Inside a process only: Kafka has no such request. The node's HTTP side asks (`quorumlab.pages`).

Source: Raft thesis 6.4.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from controller.metadata.image import MetadataImage, ResourceType
from quorum.core.application import State
from quorum.core.effects import Effect, Event, Reply, Request
from quorum.core.outbox import EffectQueue
from quorum.core.types import OffsetAndEpoch
from quorum.node.confirmed_reads import ConfirmedReads, ConfirmingLog
from wire.errors import ErrorCode

__all__ = ["CommittedReads", "ReadCommittedRequest", "ReadCommittedResponse"]

_TIMEOUT_MS = 5_000  # for a majority to answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCommittedRequest:
    """What a topic's configuration says."""

    topic: str
    config: str
    timeout_ms: int = _TIMEOUT_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCommittedResponse:
    """NOT_CONTROLLER with who leads, if that is known; REQUEST_TIMED_OUT; or the value."""

    error: ErrorCode = ErrorCode.NONE
    value: str | None = None  # None: the topic does not set it, or there is no such topic
    offset: int = -1  # all before it was committed, and is in the value
    epoch: int = -1
    leader_id: int | None = None


class AppliedMetadata(Protocol):
    """The controller, for those who read what it has applied."""

    @property
    def is_active(self) -> bool: ...

    @property
    def applied_offset(self) -> int: ...

    @property
    def image(self) -> MetadataImage: ...


class CommittedReads:
    """An application (`quorum.core.application.Application`), told of all after `controller`.

    A member has it only where somebody asks: a controller alone pays nothing for it.
    """

    def __init__(self, log: ConfirmingLog, controller: AppliedMetadata) -> None:
        self._log = log
        self._controller = controller
        self._reads = ConfirmedReads(log)
        self._outbox = EffectQueue("committed-reads")
        self.take_effects: Callable[[], list[Effect]] = self._outbox.take

    def serves(self, body: object) -> bool:
        return isinstance(body, ReadCommittedRequest)

    # --- Core -------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        assert isinstance(event, Request), event
        asked = event.body
        assert isinstance(asked, ReadCommittedRequest), asked
        if not self._controller.is_active:
            self._refuse([event], ErrorCode.NOT_CONTROLLER)
        elif not self._reads.park(event, now_ms, timeout_ms=asked.timeout_ms):
            self._refuse([event], ErrorCode.REQUEST_TIMED_OUT)

    def tick(self, now_ms: int) -> None:
        self._answer()
        self._refuse(self._reads.take_expired(now_ms), ErrorCode.REQUEST_TIMED_OUT)

    def deadline_ms(self) -> int | None:
        return self._reads.deadline_ms(self._controller.applied_offset)

    # --- Application ------------------------------------------------------------------------

    def lead(self, epoch: int, now_ms: int) -> None:
        """The controller is active now, and says so itself."""

    def resign(self, now_ms: int) -> None:
        self._refuse(self._reads.clear(), ErrorCode.NOT_CONTROLLER)

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        self._answer()

    def load(self, batches: bytes, *, is_first: bool) -> None:
        """The controller has loaded it."""

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        """The controller has it: nothing waits on a standby."""

    def state(self) -> State | None:
        return None

    # --- answers ----------------------------------------------------------------------------

    def _answer(self) -> None:
        for request in self._reads.take_ready(self._controller.applied_offset):
            self._reply(request, self._read(request.body))

    def _read(self, asked: object) -> ReadCommittedResponse:
        assert isinstance(asked, ReadCommittedRequest), asked
        image = self._controller.image
        return ReadCommittedResponse(
            value=image.config(ResourceType.TOPIC, asked.topic).get(asked.config),
            offset=image.at.offset,
            epoch=self._log.leader.epoch,
            leader_id=self._log.node_id,
        )

    def _refuse(self, requests: Iterable[Request], error: ErrorCode) -> None:
        leader = self._log.leader
        for request in requests:
            self._reply(
                request,
                ReadCommittedResponse(error=error, epoch=leader.epoch, leader_id=leader.leader_id),
            )

    def _reply(self, request: Request, response: ReadCommittedResponse) -> None:
        self._outbox.emit(Reply(token=request.token, body=response))
