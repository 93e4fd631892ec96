"""Linearizable reads of the metadata: what is committed, from the controller that surely leads.

Other reads are answered by any controller from what it has applied, which may be old. These are
answered by the active one, once a majority has confirmed that it was that when it was asked.

Inside a process only: Kafka has no such request. The node's HTTP side asks (`quorumlab.agent`).

Source: Raft thesis 6.4.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from controller.metadata.image import MetadataImage, ResourceType
from quorum.core.application import MetadataLog
from quorum.core.confirmed_reads import ConfirmedReads
from quorum.core.effects import Reply, Request
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


class CommittedReads:
    """Owned by one `Controller`, whose effects its answers are."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        self._reads = ConfirmedReads(log)

    def ask(self, request: Request, now_ms: int, *, is_active: bool) -> list[Reply]:
        """Park it, or refuse it at once."""
        body = request.body
        assert isinstance(body, ReadCommittedRequest), body
        if not is_active:
            return self._refuse([request], ErrorCode.NOT_CONTROLLER)
        if self._reads.park(request, now_ms, timeout_ms=body.timeout_ms):
            return []
        return self._refuse([request], ErrorCode.REQUEST_TIMED_OUT)

    def answer(self, image: MetadataImage, applied_offset: int) -> list[Reply]:
        """Those that are ready. `image` shows what was committed before `applied_offset`."""
        return [
            Reply(token=request.token, body=self._read(image, request.body))
            for request in self._reads.take_ready(applied_offset)
        ]

    def _read(self, image: MetadataImage, asked: object) -> ReadCommittedResponse:
        assert isinstance(asked, ReadCommittedRequest), asked
        return ReadCommittedResponse(
            value=image.config(ResourceType.TOPIC, asked.topic).get(asked.config),
            offset=image.at.offset,
            epoch=self._log.leader.epoch,
            leader_id=self._log.node_id,
        )

    def refuse_expired(self, now_ms: int) -> list[Reply]:
        return self._refuse(self._reads.take_expired(now_ms), ErrorCode.REQUEST_TIMED_OUT)

    def refuse_all(self) -> list[Reply]:
        """This controller is active no longer."""
        return self._refuse(self._reads.clear(), ErrorCode.NOT_CONTROLLER)

    def deadline_ms(self, applied_offset: int) -> int | None:
        return self._reads.deadline_ms(applied_offset)

    def _refuse(self, requests: Iterable[Request], error: ErrorCode) -> list[Reply]:
        leader = self._log.leader
        body = ReadCommittedResponse(error=error, epoch=leader.epoch, leader_id=leader.leader_id)
        return [Reply(token=request.token, body=body) for request in requests]
