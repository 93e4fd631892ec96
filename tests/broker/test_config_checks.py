"""A broker tries a change of its configs before it passes the change on."""

from typing import Any

import pytest

from broker.requests.config_checks import ConfigChecks
from controller.metadata.image import ResourceType
from quorum.core.config_effects import CheckConfigs, ConfigsChecked
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from tests.broker.brokers import Brokers
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    LegacyConfig,
    LegacyResource,
)

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
            forward=lambda request, _now_ms: self.forwarded.append(request),
        )

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


@pytest.mark.parametrize("body", [incremental("log.cleaner.threads", "3"), incremental(broker="")])
def test_everything_else_is_passed_on_at_once(body: object) -> None:
    checks = Checks()
    assert checks.ask(body) is None
    assert checks.forwarded == [checks.request]
