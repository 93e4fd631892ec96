"""A transactional producer: what it says of a transaction that was not asked to be committed."""

from random import Random

import pytest

from jepsen_like.checkers.lint import lint
from jepsen_like.clients.steps import Ask, Leaders
from jepsen_like.clients.transactional import TransactionalProducer
from jepsen_like.histories.history import Kind, Op
from jepsen_like.workloads.workload import Done
from tests.jepsen_like.clients.played import Played, produced
from wire.errors import ErrorCode
from wire.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse, FoundCoordinator
from wire.messages.transactions import EndTxnRequest, EndTxnResponse


def perform(produces: object, ends: object) -> tuple[Done, list[bool]]:
    """One transaction that is to be committed: what came of it, and each end that was asked for."""

    def answer(asked: Ask) -> object:
        match asked.body:
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(coordinators=(FoundCoordinator(key="t", node_id=1),))
            case EndTxnRequest():
                return ends
            case _:
                return produces

    played = Played(answer)
    producer = TransactionalProducer(
        transactional_id="t",
        leaders=Leaders((1, 2), Random(1), timeout_ms=100, backoff_ms=10),
        clock=played.clock,
        timeout_ms=1_000,
        request_timeout_ms=300,
    )
    done = played.play(producer.perform([("a-0", b"7")], commits=True))
    ended = [each.body.committed for each in played.asked if isinstance(each.body, EndTxnRequest)]
    return done, ended


def test_committed_transaction_tells_the_offsets() -> None:
    done, ended = perform(produced(offset=5), EndTxnResponse(producer_id=7, producer_epoch=1))
    assert (done.kind, done.value, ended) == (Kind.OK, [5], [True])


@pytest.mark.parametrize(
    ("produces", "cause"),
    [
        (None, "no answer"),
        (produced(ErrorCode.REQUEST_TIMED_OUT), "REQUEST_TIMED_OUT"),
        (produced(ErrorCode.INVALID_TXN_STATE), "INVALID_TXN_STATE"),
    ],
)
def test_what_was_never_to_be_committed_has_surely_failed(produces: object, cause: str) -> None:
    done, ended = perform(produces, EndTxnResponse(producer_id=7, producer_epoch=1))
    assert (done.kind, done.error, done.extra) == (Kind.FAIL, "aborted", {"cause": cause})
    assert True not in ended
    began = Op(index=0, time_ns=0, kind=Kind.INVOKE, process=0, f="txn", value=[])
    failed = Op(
        index=1, time_ns=1, kind=done.kind, process=0, f="txn", value=[], error=done.error
    )  # fmt: skip
    assert lint([began, failed]) == []


def test_nobody_knows_what_came_of_a_commit_without_an_answer() -> None:
    done, _ = perform(produced(offset=5), None)
    assert done.kind is Kind.INFO
