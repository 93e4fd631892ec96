"""A broker tries a change of its configs before it passes the change on."""

from typing import Any

import pytest

from broker.requests.config_checks import ConfigChecks, problem
from controller.metadata.image import ResourceType
from quorum.core.config_effects import CheckConfigs, ConfigsChecked
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from tests.broker.brokers import Brokers
from wire.apis import decode_request, encode_request
from wire.errors import ErrorCode
from wire.forwarding import wrap_response
from wire.message import replace
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    LegacyConfig,
    LegacyResource,
)
from wire.messages.registration import EnvelopeResponse

STORE = "listener.name.out.ssl.keystore.location"
OWN = {STORE: "/old", "ssl.keystore.type": "PEM", "log.cleaner.threads": "2"}


class Checks:
    def __init__(self) -> None:
        cluster: Any = Brokers(1).start().brokers[1].cluster
        configs = {(ResourceType.BROKER, "1"): OWN, (ResourceType.BROKER, ""): {"x": "y"}}
        cluster.image = cluster.image._replace(configs=configs)
        self.outbox, self.forwarded = Outbox("broker"), list[Request]()
        self.checks = ConfigChecks(
            cluster=cluster,
            outbox=self.outbox,
            forward=self.forward,
        )

    def forward(self, request: Request, _now_ms: int, amend: Any) -> None:
        self.forwarded.append(request)
        self.amend = amend

    def ask(self, body: object) -> CheckConfigs | None:
        self.request = Request(token=1, body=body)
        self.checks.handle(self.request, 0)
        found = self.outbox.take()
        assert not (found and self.forwarded), "it waits for the outcome"
        (check,) = found or (None,)
        assert check is None or isinstance(check, CheckConfigs)
        return check

    def told(self, body: object) -> list[Any]:
        self.checks.handle(Request(token=1, body=body), 0)
        return [each.body for each in self.outbox.take() if isinstance(each, Reply)]

    def answer(self, check: CheckConfigs, problem: str | None) -> list[Any]:
        self.outbox.deliver(check.token, ConfigsChecked(token=check.token, problem=problem), 0)
        return [each.body for each in self.outbox.take() if isinstance(each, Reply)]


def incremental(
    name: str = STORE, value: str | None = "/new", operation: int = 0, broker: str = "1"
) -> IncrementalAlterConfigsRequest:
    entry = AlterableConfig(name=name, value=value, config_operation=operation)
    item = AlterConfigsResource(
        resource_type=ResourceType.BROKER, resource_name=broker, configs=(entry,)
    )
    return IncrementalAlterConfigsRequest(resources=(item,), validate_only=False)


LEGACY = AlterConfigsRequest(
    resources=(
        LegacyResource(
            resource_type=ResourceType.BROKER,
            resource_name="1",
            configs=(LegacyConfig(name=STORE, value="/new"),),
        ),
    ),
    validate_only=False,
)


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (incremental(), {**OWN, STORE: "/new", "x": "y"}),
        (incremental(operation=1), {**{k: v for k, v in OWN.items() if k != STORE}, "x": "y"}),
        (LEGACY, {STORE: "/new", "x": "y"}),
    ],
)
def test_security_of_the_broker_is_tried_as_it_would_be(body: object, values: object) -> None:
    checks = Checks()
    check = checks.ask(body)
    assert check is not None
    assert check.values == values
    assert checks.answer(check, None) == []
    assert checks.forwarded == [checks.request]


@pytest.mark.parametrize("body", [incremental(), LEGACY])
def test_what_cannot_be_used_is_refused_and_not_passed_on(body: object) -> None:
    checks = Checks()
    check = checks.ask(body)
    assert check is not None
    (answer,) = checks.answer(check, "no such file")
    (result,) = answer.responses
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, "no such file")
    assert (result.resource_type, result.resource_name) == (ResourceType.BROKER, "1")
    assert checks.forwarded == []


@pytest.mark.parametrize(
    ("broker", "words"),
    [
        ("2", "Unexpected broker id, expected 1, but received 2"),
        ("seven", "Node id must be an integer, but it is: seven"),
    ],
)
def test_another_broker_s_configs_are_for_that_one_to_try(broker: str, words: str) -> None:
    checks = Checks()
    (answer,) = checks.told(incremental(broker=broker))
    (result,) = answer.responses
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, words)
    assert checks.forwarded == []


def beside_another(frame_version: int | None) -> tuple[Checks, Any]:
    """A topic's change beside one of broker 7: what is passed on, and the checks."""
    checks = Checks()
    topic = AlterConfigsResource(
        resource_type=ResourceType.TOPIC,
        resource_name="t",
        configs=(AlterableConfig(name="retention.ms", value="1", config_operation=0),),
    )
    whole = replace(incremental(broker="7"), resources=(*incremental(broker="7").resources, topic))
    frame, body = b"", whole
    if frame_version is not None:  # the door has taken the topic out, for the trial
        frame = b"".join(encode_request(whole, frame_version, 5, "me"))
        body = incremental(broker="7")
    checks.checks.handle(Request(token=1, body=body, frame=frame), 0)
    (passed_on,) = checks.forwarded
    return checks, passed_on


def test_what_is_refused_here_leaves_the_others_to_the_controller() -> None:
    checks, passed_on = beside_another(None)
    assert [item.resource_name for item in passed_on.body.resources] == ["t"]
    fine = AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE, error_message=None, resource_type=2, resource_name="t"
    )
    joined = checks.amend(IncrementalAlterConfigsResponse(responses=(fine,)))
    assert [(each.resource_name, each.error_code) for each in joined.responses] == [
        ("7", ErrorCode.INVALID_REQUEST),
        ("t", ErrorCode.NONE),
    ]


def test_answers_are_in_the_order_of_the_request_whoever_gives_them() -> None:
    (of_seven,) = incremental(broker="7").resources
    topic = replace(of_seven, resource_type=2, resource_name="t")
    checks = Checks()
    body = replace(incremental(broker="7"), resources=(topic, of_seven))
    checks.checks.handle(Request(token=1, body=body), 0)
    fine = AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE, error_message=None, resource_type=2, resource_name="t"
    )
    joined = checks.amend(IncrementalAlterConfigsResponse(responses=(fine,)))
    assert [each.resource_name for each in joined.responses] == ["t", "7"]


def test_own_security_is_tried_beside_what_is_refused_already() -> None:
    own_and_another = (*incremental().resources, *incremental(broker="7").resources)
    checks = Checks()
    check = checks.ask(replace(incremental(), resources=own_and_another))
    assert check is not None
    assert checks.answer(check, None) == []
    (passed_on,) = checks.forwarded
    assert passed_on.body == incremental()


def test_security_that_is_refused_already_is_not_tried() -> None:
    (item,) = incremental().resources
    twice = replace(item, configs=item.configs * 2)
    (answer,) = Checks().told(replace(incremental(), resources=(twice,)))
    assert answer.responses[0].error_code is ErrorCode.INVALID_REQUEST


def test_a_reason_is_cut_to_what_an_answer_can_hold() -> None:
    (item,) = incremental(broker="7").resources
    empty = AlterableConfig(name="é" * 40_000, value=None, config_operation=0)
    checks = Checks()
    body = replace(incremental(broker="7"), resources=(replace(item, configs=(empty,)),))
    (answer,) = checks.told(body)
    assert 900 < len(answer.responses[0].error_message.encode()) <= 1000


def test_what_the_door_has_removed_is_still_for_the_controller_to_answer() -> None:
    checks, passed_on = beside_another(1)
    inner = decode_request(passed_on.frame)
    assert (inner.correlation_id, inner.client_id, inner.api_version) == (5, "me", 1)
    assert [item.resource_name for item in inner.body.resources] == ["t"]
    denied = AlterConfigsResourceResponse(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=None,
        resource_type=2,
        resource_name="t",
    )
    joined = checks.amend(
        wrap_response(inner, IncrementalAlterConfigsResponse(responses=(denied,)))
    )
    assert [each.error_code for each in joined.responses] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ]


def test_the_error_of_an_envelope_stays_what_it_is() -> None:
    checks, _ = beside_another(1)
    error = EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assert checks.amend(error) is error


@pytest.mark.parametrize(
    ("names", "value", "operation", "is_refused"),
    [(("a",), "1", 0, False), (("a",), None, 1, False), (("a",), None, 0, True),
     (("a",), None, 2, True), (("a", "a"), "1", 0, True)],
)  # fmt: skip
def test_a_key_comes_once_and_with_a_value(
    names: tuple[str, ...], value: str | None, operation: int, is_refused: bool
) -> None:
    entries = tuple(
        AlterableConfig(name=name, value=value, config_operation=operation) for name in names
    )
    item = AlterConfigsResource(
        resource_type=ResourceType.TOPIC, resource_name="t", configs=entries
    )
    assert (problem(item, 1) is not None) is is_refused


@pytest.mark.parametrize("body", [incremental("log.cleaner.threads", "3"), incremental(broker="")])
def test_everything_else_is_passed_on_at_once(body: object) -> None:
    checks = Checks()
    assert checks.ask(body) is None
    assert checks.forwarded == [checks.request]
