"""A broker forwards requests to the active controller when only that can answer them.

This module decides when to ask again: while no controller is known or the one that was asked is not
it, until the request's time is up. The client's own bytes travel in an envelope, and the
controller's answer goes back as it came (an EnvelopeResponse as the answer to something else is
unpacked at the edge), so neither knows of the detour. A request without bytes, in a simulation,
travels as it is.

Source: KIP-590; Kafka's ForwardingManager.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from broker.config import BrokerConfig
from broker.membership.controller_channel import ControllerChannel
from broker.waiting import Deadlines
from quorum.core.effects import Event, Failure, Reply, Request, RequestFailed, Response
from quorum.core.outbox import Outbox
from wire.errors import ErrorCode
from wire.forwarding import has_error, wrap_request
from wire.messages.acls import CreateAclsRequest, DeleteAclsRequest
from wire.messages.client_quotas import AlterClientQuotasRequest
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.messages.features import UpdateFeaturesRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from wire.messages.registration import EnvelopeResponse, UnregisterBrokerRequest
from wire.messages.scram_users import AlterUserScramCredentialsRequest
from wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from wire.messages.voters import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest

__all__ = ["FORWARDED", "Forwarding"]

FORWARDED = (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    CreatePartitionsRequest,
    AlterConfigsRequest,
    IncrementalAlterConfigsRequest,
    ElectLeadersRequest,
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    DescribeQuorumRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
)
_RETRY_BACKOFF_MS = 50


@dataclass(slots=True, eq=False)
class Forwarded:
    request: Request
    until_ms: int
    amend: Callable[[object], object] | None = None  # the controller's answer
    is_done: bool = False


class Forwarding:
    def __init__(
        self,
        *,
        config: BrokerConfig,
        controller: ControllerChannel,
        outbox: Outbox,
        deadlines: Deadlines,
    ) -> None:
        self._timeout_ms = config.forward_timeout_ms
        self._controller = controller
        self._outbox = outbox
        self._deadlines = deadlines
        self._retries: list[tuple[int, Forwarded]] = []  # (when, what), in this order

    def handle(
        self,
        request: Request,
        now_ms: int,
        amend: Callable[[object], object] | None = None,
    ) -> None:
        forwarded = Forwarded(request, now_ms + self._timeout_ms, amend)
        if self._deadlines.add(forwarded, forwarded.until_ms, partial(self._expire, forwarded)):
            self._send(forwarded, now_ms)
        else:
            self._expire(forwarded, now_ms)

    def tick(self, now_ms: int) -> None:
        while self._retries and self._retries[0][0] <= now_ms:
            _, forwarded = self._retries.pop(0)
            if not forwarded.is_done:
                self._send(forwarded, now_ms)

    def deadline_ms(self) -> int | None:
        return self._retries[0][0] if self._retries else None

    def _send(self, forwarded: Forwarded, now_ms: int) -> None:
        request = forwarded.request
        body = request.body
        if request.frame:
            body = wrap_request(
                request.frame, client_host=request.client_host, principal=request.principal
            )
        sent = self._controller.ask(
            body,
            channel="forwarding",
            timeout_ms=max(forwarded.until_ms - now_ms, 1),
            answered=partial(self._answered, forwarded),
        )
        if not sent:
            self._retry(forwarded, now_ms)

    def _retry(self, forwarded: Forwarded, now_ms: int) -> None:
        self._retries.append((now_ms + _RETRY_BACKOFF_MS, forwarded))

    def _answered(self, forwarded: Forwarded, event: Event, now_ms: int) -> None:
        if forwarded.is_done:
            return
        match event:
            case Response(body=body) if not has_error(body, ErrorCode.NOT_CONTROLLER):
                amend = forwarded.amend
                self._reply(forwarded, body if amend is None else amend(body))
            case RequestFailed(failure=Failure.UNSUPPORTED_VERSION):
                self._refuse(forwarded, ErrorCode.UNSUPPORTED_VERSION)
            case _:
                self._retry(forwarded, now_ms)

    def _expire(self, forwarded: Forwarded, _now_ms: int) -> None:
        self._refuse(forwarded, ErrorCode.REQUEST_TIMED_OUT)

    def _refuse(self, forwarded: Forwarded, error: ErrorCode) -> None:
        """No controller answered. The error of an envelope closes the client's connection: it
        asks another broker, or asks for versions anew."""
        body = EnvelopeResponse(error_code=error) if forwarded.request.frame else None
        self._outbox.trace("forwarding-refused", error=error.name)
        self._reply(forwarded, body)

    def _reply(self, forwarded: Forwarded, body: object | None) -> None:
        forwarded.is_done = True
        self._outbox.emit(Reply(token=forwarded.request.token, body=body))
