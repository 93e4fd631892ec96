"""Client quotas: which entities and values there may be, and which of them a filter shows."""

from collections.abc import Mapping
from typing import Any

import pytest

from controller.decisions.quota_changes import decide_alter_client_quotas
from controller.metadata.client_quotas import describe_client_quotas
from controller.metadata.describe import describe
from controller.metadata.image import MetadataImage
from tests.controller.clusters import cluster, step
from wire.errors import ErrorCode
from wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)

BASE = cluster(1)
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def entry(entity: Mapping[str, str | None], **values: float | None) -> AlterEntryData:
    return AlterEntryData(
        entity=tuple(EntityData(entity_type=k, entity_name=name) for k, name in entity.items()),
        ops=tuple(
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ),
    )


def decide(image: MetadataImage, *entries: AlterEntryData, validate_only: bool = False) -> Any:
    request = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    return decide_alter_client_quotas(image, request)


def altered(image: MetadataImage, *entries: AlterEntryData) -> MetadataImage:
    decision = decide(image, *entries)
    assert {result.error_code for result in decision.response.entries} == {ErrorCode.NONE}
    return step(image, *decision.changes)


def shown(image: MetadataImage, *components: tuple[str, int, str | None], strict: bool) -> Any:
    request = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ),
        strict=strict,
    )
    return describe_client_quotas(image, request)


def entities(answer: Any) -> list[dict[str, str | None]]:
    return [{e.entity_type: e.entity_name for e in item.entity} for item in answer.entries]


def test_quotas_are_set_changed_and_removed() -> None:
    user = {"user": "bob"}
    image = altered(BASE, entry(user, producer_byte_rate=1024.0, request_percentage=12.5))
    assert list(image.client_quotas.values()) == [
        {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
    ]
    image = altered(image, entry(user, producer_byte_rate=None, consumer_byte_rate=7.0))
    assert list(image.client_quotas.values()) == [
        {"request_percentage": 12.5, "consumer_byte_rate": 7.0}
    ]
    image = altered(image, entry(user, request_percentage=None, consumer_byte_rate=None))
    assert image.client_quotas == {}


def test_order_of_a_pair_does_not_make_another_entity() -> None:
    one = {"user": "bob", "client-id": None}
    other = {"client-id": None, "user": "bob"}
    image = altered(BASE, entry(one, producer_byte_rate=1.0))
    image = altered(image, entry(other, producer_byte_rate=2.0))
    assert list(image.client_quotas.values()) == [{"producer_byte_rate": 2.0}]


def test_what_stays_as_it_is_is_not_recorded() -> None:
    image = altered(BASE, entry({"user": "bob"}, producer_byte_rate=1.0))
    same = entry({"user": "bob"}, producer_byte_rate=1.0, consumer_byte_rate=None)
    assert decide(image, same).changes == ()


def test_asking_only_whether_records_nothing() -> None:
    decision = decide(BASE, entry({"user": "bob"}, producer_byte_rate=1.0), validate_only=True)
    assert decision.response.entries[0].error_code is ErrorCode.NONE
    assert decision.changes == ()


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (entry({}, producer_byte_rate=1.0), "Invalid empty client quota entity"),
        (entry({"group": "g"}, producer_byte_rate=1.0), "Unhandled client quota entity type"),
        (entry({"user": ""}, producer_byte_rate=1.0), "Empty user not supported"),
        (entry({"user": "a", "ip": "1.2.3.4"}, producer_byte_rate=1.0), "stands alone"),
        (entry({"ip": "not an address"}, connection_creation_rate=1.0), "not a valid IP"),
        (entry({"ip": "1.2.3.4"}, producer_byte_rate=1.0), "Invalid configuration key"),
        (entry({"user": "a"}, connection_creation_rate=1.0), "Invalid configuration key"),
        (entry({"user": "a"}, producer_byte_rate=1.5), "cannot be a fractional value"),
        (entry({"ip": None}, connection_creation_rate=2.0**31), "a number of type INT"),
        (entry({"user": "a"}, producer_byte_rate=1e300), "a number of type LONG"),
        (entry({"user": "a"}, producer_byte_rate=0.0), "must be greater than 0"),
        (entry({"user": "a"}, request_percentage=-1.0), "must be greater than 0"),
        (entry({"user": "a"}, request_percentage=float("nan")), "must be a number"),
        (
            AlterEntryData(
                entity=(EntityData(entity_type="user", entity_name="a"),) * 2,
                ops=(OpData(key="producer_byte_rate", value=1.0),),
            ),
            "duplicate entity entry user",
        ),
        (
            AlterEntryData(
                entity=(EntityData(entity_type="user", entity_name="a"),),
                ops=(OpData(key="producer_byte_rate", value=1.0),) * 2,
            ),
            "Duplicate quota key",
        ),
    ],
)
def test_wrong_entry_is_refused_by_itself(asked: AlterEntryData, reason: str) -> None:
    decision = decide(BASE, asked, entry({"user": "fine"}, producer_byte_rate=1.0))
    refused, fine = decision.response.entries
    assert refused.error_code is ErrorCode.INVALID_REQUEST
    assert reason in refused.error_message
    assert refused.entity == asked.entity
    assert fine.error_code is ErrorCode.NONE
    assert len(decision.changes) == 1


def test_entity_named_twice_is_changed_by_neither() -> None:
    one = entry({"user": "a", "client-id": "c"}, producer_byte_rate=1.0)
    other = entry({"client-id": "c", "user": "a"}, producer_byte_rate=2.0)
    decision = decide(BASE, one, other)
    codes = {result.error_code for result in decision.response.entries}
    assert codes == {ErrorCode.INVALID_REQUEST}
    assert decision.changes == ()


def many() -> MetadataImage:
    return altered(
        BASE,
        entry({"user": "bob"}, producer_byte_rate=1.0),
        entry({"user": None}, producer_byte_rate=2.0),
        entry({"user": "bob", "client-id": "c"}, producer_byte_rate=3.0),
        entry({"client-id": "c"}, producer_byte_rate=4.0),
        entry({"ip": "1.2.3.4"}, connection_creation_rate=5.0),
    )


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ((), False, 5),
        ((), True, 0),
        ((("user", EXACT, "bob"),), False, 2),
        ((("user", EXACT, "bob"),), True, 1),
        ((("user", DEFAULT, None),), True, 1),
        ((("user", SPECIFIED, None),), True, 2),
        ((("user", SPECIFIED, None),), False, 3),
        ((("user", EXACT, "bob"), ("client-id", SPECIFIED, None)), True, 1),
        ((("ip", SPECIFIED, None),), True, 1),
        ((("user", EXACT, "nobody"),), False, 0),
    ],
)
def test_filter_shows_what_it_means(components: Any, strict: bool, found: int) -> None:
    answer = shown(many(), *components, strict=strict)
    assert answer.error_code is ErrorCode.NONE
    assert len(answer.entries) == found, entities(answer)


def test_values_are_shown_with_their_entity() -> None:
    (described,) = shown(many(), ("client-id", EXACT, "c"), strict=True).entries
    assert [(value.key, value.value) for value in described.values] == [("producer_byte_rate", 4.0)]
    assert [(each.entity_type, each.entity_name) for each in described.entity] == [
        ("client-id", "c")
    ]


def test_order_of_changes_is_not_in_the_description() -> None:
    a, b = (
        entry({"user": "a"}, producer_byte_rate=1.0),
        entry({"user": "b"}, producer_byte_rate=1.0),
    )
    assert describe(altered(BASE, a, b)) == describe(altered(BASE, b, a))


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ((("", EXACT, "a"),), ErrorCode.INVALID_REQUEST),
        ((("group", EXACT, "a"),), ErrorCode.UNSUPPORTED_VERSION),
        ((("user", EXACT, "a"), ("user", DEFAULT, None)), ErrorCode.INVALID_REQUEST),
        ((("user", EXACT, None),), ErrorCode.INVALID_REQUEST),
        ((("user", DEFAULT, "a"),), ErrorCode.INVALID_REQUEST),
        ((("user", SPECIFIED, "a"),), ErrorCode.INVALID_REQUEST),
        ((("user", 7, None),), ErrorCode.INVALID_REQUEST),
        ((("user", EXACT, "a"), ("ip", SPECIFIED, None)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_filter_that_makes_no_sense_is_refused(components: Any, code: ErrorCode) -> None:
    answer = shown(many(), *components, strict=False)
    assert answer.error_code is code
    assert answer.entries is None


def test_one_request_does_not_name_more_than_a_frame_could_replicate() -> None:
    large = [entry({"user": f"{n}-" + "x" * 30_000}, producer_byte_rate=9.0) for n in range(140)]
    decision = decide(BASE, *large)
    assert {each.error_code for each in decision.response.entries} == {ErrorCode.POLICY_VIOLATION}
    assert decision.changes == ()
