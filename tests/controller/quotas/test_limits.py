"""Which quota holds for a user and a client id, among all that may be set."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from controller.metadata.image import quota_entity
from controller.quotas.limits import Limit, Limits, Quotas
from wire.metadata_records import QuotaEntity

KEY = "producer_byte_rate"


def quotas(*given: tuple[Mapping[str, str | None], float], key: str = KEY) -> Quotas:
    return {
        quota_entity(QuotaEntity(entity_type=k, entity_name=v) for k, v in names.items()): {
            key: value
        }
        for names, value in given
    }


# KIP-55's table, for user u and client id c; and who shares the rate.
ORDER: tuple[tuple[dict[str, str | None], tuple[str | None, str | None]], ...] = (
    ({"user": "u", "client-id": "c"}, ("u", "c")),
    ({"user": "u", "client-id": None}, ("u", "c")),
    ({"user": "u"}, ("u", None)),
    ({"user": None, "client-id": "c"}, ("u", "c")),
    ({"user": None, "client-id": None}, ("u", "c")),
    ({"user": None}, ("u", None)),
    ({"client-id": "c"}, (None, "c")),
    ({"client-id": None}, (None, "c")),
)
OTHERS: tuple[dict[str, str | None], ...] = (
    {"user": "v"},
    {"client-id": "d"},
    {"user": "v", "client-id": "c"},
    {"user": "u", "client-id": "d"},
    {"ip": None},
)


@given(st.sets(st.integers(0, 7)))
def test_most_specific_entity_wins(present: set[int]) -> None:
    given_ = [(ORDER[place][0], float(place + 1)) for place in present]
    limits = Limits(quotas(*given_, *((other, 99.0) for other in OTHERS)))
    expected = None
    if present:
        first = min(present)
        expected = Limit(float(first + 1), ORDER[first][1])
    assert limits.of(KEY, "u", "c") == expected
    assert limits.of(KEY, "u", "c") is limits.of(KEY, "u", "c")


def test_entity_without_a_value_for_the_key_is_passed_over() -> None:
    both = {**quotas(({"user": "u"}, 1.0), key="other"), **quotas(({"client-id": "c"}, 2.0))}
    assert Limits(both).of(KEY, "u", "c") == Limit(2.0, (None, "c"))


def test_client_without_an_id_has_the_default() -> None:
    limits = Limits(quotas(({"client-id": None}, 5.0), ({"user": "u"}, 1.0)))
    assert limits.of(KEY, "ANONYMOUS", "") == Limit(5.0, (None, ""))


def test_addresses_alone_are_no_limits_of_clients() -> None:
    limits = Limits(quotas(({"ip": "10.0.0.1"}, 3.0), ({"ip": None}, 7.0), key="rate"))
    assert not limits.has_any
    assert limits.of_address("rate", "10.0.0.1") == 3.0
    assert limits.of_address("rate", "10.0.0.2") == 7.0
    assert Limits(quotas(({"client-id": None}, 7.0))).has_any
