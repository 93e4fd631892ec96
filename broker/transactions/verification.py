"""A leader asks the coordinator whether a producer's transaction goes on, and has its partition.

The coordinator is here, or another broker: then what is to be asked of it while a request is out is
asked in the next one, together. An answer tells transactions apart by their id alone, so that two
questions about one id never share a request.

Source: KIP-890; Kafka's AddPartitionsToTxnManager.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from broker.cluster import Cluster
from broker.transactions.decisions import Refused, Settled
from broker.transactions.transaction import EPOCH_BUMPS, places_by_topic
from broker.transactions.transaction_coordinator import Coordinator, TransactionCoordinators
from broker.verifying import Concluded, Place, TransactionAsked
from quorum.core.effects import Event, body_of
from quorum.core.outbox import Outbox
from wire.errors import ErrorCode
from wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

__all__ = ["Verification", "ask"]

_CHANNEL = "transaction-verification"
_SETTING = "transaction.partition.verification.enable"
_WAITING_MAX = 10_000  # questions for one coordinator

Errors = Mapping[Place, ErrorCode]


class Question(NamedTuple):
    asked: TransactionAsked
    concluded: Concluded

    def refuse(self, error: ErrorCode, now_ms: int) -> None:
        self.concluded(dict.fromkeys(self.asked.places, error), now_ms)


@dataclass(slots=True)
class Remote:
    """Another broker, with what it is to be asked."""

    node_id: int
    waiting: list[Question] = field(default_factory=list)
    is_asked: bool = False


class Verification:
    def __init__(
        self,
        *,
        cluster: Cluster,
        coordinators: TransactionCoordinators,
        outbox: Outbox,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms` is for an answer of the coordinator."""
        self._cluster = cluster
        self._coordinators = coordinators
        self._outbox = outbox
        self._timeout_ms = timeout_ms
        self._remotes: dict[int, Remote] = {}

    def verify(self, asked: TransactionAsked, concluded: Concluded, now_ms: int) -> None:
        """Ask the coordinator. `concluded` may be called at once, or much later."""
        question = Question(asked, partial(_conclude, concluded))
        if not (asked.adds or self._cluster.flag(_SETTING)):
            question.refuse(ErrorCode.NONE, now_ms)
            return
        listener = self._cluster.config.inter_broker_listener_name
        endpoint = self._coordinators.locate(asked.transactional_id, listener)
        if endpoint is None:
            question.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
        elif endpoint.node_id == self._cluster.config.node_id:
            self._ask_here(question, now_ms)
        else:
            self._ask_there(question, endpoint.node_id, now_ms)

    def _ask_here(self, question: Question, now_ms: int) -> None:
        transactional_id = question.asked.transactional_id
        found = self._coordinators.find(transactional_id)
        if not transactional_id:
            question.refuse(ErrorCode.INVALID_REQUEST, now_ms)
        elif isinstance(found, ErrorCode):
            question.refuse(found, now_ms)
        else:
            ask(found, question.asked, question.concluded, now_ms)

    # --- another broker ---------------------------------------------------------------------

    def _ask_there(self, question: Question, node_id: int, now_ms: int) -> None:
        remote = self._remotes.setdefault(node_id, Remote(node_id))
        if len(remote.waiting) >= _WAITING_MAX:
            question.refuse(ErrorCode.NETWORK_EXCEPTION, now_ms)
            return
        remote.waiting.append(question)
        self._send(remote, now_ms)

    def _send(self, remote: Remote, now_ms: int) -> None:
        """The endpoint is looked up each time: a broker may come back on another port."""
        if remote.is_asked or not remote.waiting:
            return
        listener = self._cluster.config.inter_broker_listener_name
        endpoint = self._cluster.endpoint(remote.node_id, listener)
        if endpoint is None:
            waiting, remote.waiting = remote.waiting, []
            _refuse(waiting, ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
            return
        sent, remote.waiting = _one_of_each_id(remote.waiting)
        remote.is_asked = True
        self._outbox.ask(
            endpoint,
            AddPartitionsToTxnRequest(transactions=tuple(map(_transaction, sent.values()))),
            channel=_CHANNEL,
            timeout_ms=self._timeout_ms,
            answered=partial(self._answered, remote, sent),
        )

    def _answered(
        self, remote: Remote, sent: Mapping[str, Question], event: Event, now_ms: int
    ) -> None:
        remote.is_asked = False
        body = body_of(event)
        if not isinstance(body, AddPartitionsToTxnResponse):
            _refuse(sent.values(), ErrorCode.NETWORK_EXCEPTION, now_ms)
        elif body.error_code is not ErrorCode.NONE:
            _refuse(sent.values(), body.error_code, now_ms)
        else:
            results = _results(body)
            for transactional_id, question in sent.items():
                found = results.get(transactional_id, {})
                missing = ErrorCode.UNKNOWN_SERVER_ERROR  # it did not tell
                errors = {place: found.get(place, missing) for place in question.asked.places}
                question.concluded(errors, now_ms)
        self._send(remote, now_ms)


def ask(
    coordinator: Coordinator,
    asked: TransactionAsked,
    concluded: Concluded,
    now_ms: int,
    *,
    client_version: int = EPOCH_BUMPS,
) -> None:
    """`concluded` hears the coordinator's own errors, by place."""
    transactional_id, places = asked.transactional_id, frozenset(asked.places)
    if not asked.adds:
        concluded(coordinator.verify(transactional_id, asked.producer, places), now_ms)
        return

    def answer(decided: Refused | Settled, now_ms: int) -> None:
        error = decided.error if isinstance(decided, Refused) else ErrorCode.NONE
        concluded(dict.fromkeys(asked.places, error), now_ms)

    coordinator.add(transactional_id, asked.producer, places, client_version, answer, now_ms)


def _conclude(concluded: Concluded, errors: Errors, now_ms: int) -> None:
    """In the words of one who writes to a partition."""
    told = {
        ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,
    }
    concluded({place: told.get(error, error) for place, error in errors.items()}, now_ms)


def _refuse(questions: Iterable[Question], error: ErrorCode, now_ms: int) -> None:
    for question in questions:
        question.refuse(error, now_ms)


def _one_of_each_id(questions: list[Question]) -> tuple[dict[str, Question], list[Question]]:
    """What may go into one request, and what is left."""
    sent: dict[str, Question] = {}
    left = [
        question
        for question in questions
        if sent.setdefault(question.asked.transactional_id, question) is not question
    ]
    return sent, left


def _transaction(question: Question) -> AddPartitionsToTxnTransaction:
    asked = question.asked
    return AddPartitionsToTxnTransaction(
        transactional_id=asked.transactional_id,
        producer_id=asked.producer_id,
        producer_epoch=asked.producer_epoch,
        verify_only=not asked.adds,
        topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes))
            for name, indexes in places_by_topic(asked.places).items()
        ),
    )


def _results(body: AddPartitionsToTxnResponse) -> dict[str, dict[Place, ErrorCode]]:
    return {
        result.transactional_id: {
            (topic.name, partition.partition_index): partition.partition_error_code
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for result in body.results_by_transaction
    }
