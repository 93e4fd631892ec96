"""In whose name a topic is created that nobody has created before it was asked for."""

from typing import Any, cast

import pytest

from broker.config import BrokerConfig
from broker.requests.auto_creation import AutoCreation
from quorum.core.effects import Effect, Request, Response, Send, Trace
from quorum.core.outbox import Outbox
from quorum.core.types import Endpoint
from tests.broker.brokers import Brokers
from wire.errors import ErrorCode
from wire.forwarding import Opened, unwrap, wrap_response
from wire.messages.metadata import MetadataRequest
from wire.messages.registration import EnvelopeRequest, EnvelopeResponse
from wire.messages.topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from wire.security.principals import Principal

ALICE = Principal("User", "alice")


class Asked:
    """One creation, and what it asks of the controller."""

    def __init__(self, asked_by: Request | None) -> None:
        self.outbox = Outbox("broker")
        cluster: Any = Brokers(1).start().brokers[1].cluster
        self.config: BrokerConfig = cluster.config
        auto_creation = AutoCreation(
            cluster=cluster, controller=cast(Any, self), outbox=self.outbox
        )
        auto_creation.create("wanted", asked_by)
        (self.send,) = self.taken(Send)

    def ask(self, body: object, **how: Any) -> bool:
        self.outbox.ask(Endpoint(node_id=9, host="h", port=1), body, **how)
        return True

    def taken(self, kind: type[Effect]) -> list[Any]:
        return [each for each in self.outbox.take() if isinstance(each, kind)]

    def answered(self, body: object) -> str:
        self.outbox.deliver(self.send.token, Response(token=self.send.token, body=body), 0)
        (trace,) = self.taken(Trace)
        return str(dict(trace.fields)["error"])


def by_alice(frame: bytes = b"as it came") -> Request:
    return Request(
        token=1,
        body=MetadataRequest(),
        client_id="app",
        client_host="10.0.0.1",
        principal=ALICE,
        frame=frame,
    )


def test_what_a_client_asks_for_is_asked_in_its_name() -> None:
    envelope = Asked(by_alice()).send.body
    assert isinstance(envelope, EnvelopeRequest)
    opened = unwrap(envelope)
    assert isinstance(opened, Opened)
    assert (opened.principal, opened.client_host) == (ALICE, "10.0.0.1")
    assert opened.request.client_id == "app"
    assert [topic.name for topic in opened.request.body.topics] == ["wanted"]


@pytest.mark.parametrize("asked_by", [None, by_alice(frame=b"")])
def test_what_a_broker_needs_it_asks_for_itself(asked_by: Request | None) -> None:
    assert isinstance(Asked(asked_by).send.body, CreateTopicsRequest)


def test_what_the_controller_says_is_traced() -> None:
    asked = Asked(by_alice())
    opened = unwrap(asked.send.body)
    assert isinstance(opened, Opened)
    result = CreatableTopicResult(
        name="wanted", error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=None
    )
    envelope = wrap_response(opened.request, CreateTopicsResponse(topics=(result,)))
    assert asked.answered(envelope) == "TOPIC_AUTHORIZATION_FAILED"
    refusal = EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert Asked(by_alice()).answered(refusal) == "CLUSTER_AUTHORIZATION_FAILED"
    assert Asked(by_alice()).answered(EnvelopeResponse(response_data=b"x")) == "malformed answer"
