"""Hosts of ACLs that are networks. The expected answers are those of Kafka 4.4.0's CidrUtils."""

from typing import Any

import pytest

from controller.authorization.acl_index import Resource
from controller.metadata.acl_hosts import address_of, is_in, network_problem
from controller.metadata.security import Operation
from tests.controller.authorization.entries import DENY, acl, subject
from tests.controller.clusters import cluster, step
from tests.controller.test_acls import acl as asked
from tests.controller.test_acls import create
from wire.errors import ErrorCode
from wire.metadata_records import FeatureLevelRecord

CLIENTS = (
    "10.1.0.0",
    "10.1.255.255",
    "10.2.0.0",
    "0:0:0:0:0:0:0:1",
    "fe80:0:0:0:0:0:0:5%eth0",
    "2001:db8:0:0:0:0:0:9",
)


@pytest.mark.parametrize(
    ("host", "clients"),
    [
        ("10.1.0.0/16", "110000"),
        ("10.1.2.3/16", "110000"),
        ("010.1.0.0/16", "110000"),
        ("10.1.0.0/0", "111000"),
        ("10.1.0.0/32", "100000"),
        ("::1/128", "000100"),
        ("fe80::/10", "000010"),
        ("fe80::1%eth0/64", "000010"),
        ("2001:DB8::1/32", "000001"),
        ("::/0", "000111"),
        ("::10.1.0.0/112", "000000"),
    ],
)
def test_network_has_the_clients_that_kafka_finds_in_it(host: str, clients: str) -> None:
    assert network_problem(host) is None
    found = "".join(str(int(is_in(address_of(client), host))) for client in CLIENTS)
    assert found == clients


@pytest.mark.parametrize(
    "host",
    [
        "10.1.0.0/33",
        "10.1.0.0/-1",
        "10.1.0.0/016",
        "10.1.0.0/255.255.0.0",
        "10.1.0.0/16/2",
        "10.1.0.0/",
        "10.1.0/16",
        " 10.1.0.0/16",
        "300.1.1.1/8",
        "host/8",
        "2001:db8::/129",
        "::ffff:10.1.0.0/112",
    ],
)
def test_what_kafka_takes_for_no_network_has_nobody(host: str) -> None:
    assert str(network_problem(host)).startswith(f"Invalid CIDR notation '{host}': ")
    assert not any(is_in(address_of(client), host) for client in CLIENTS)


def test_nobody_is_in_a_network_without_an_address() -> None:
    assert not is_in(address_of("localhost"), "0.0.0.0/0")
    assert is_in(address_of("::ffff:10.1.0.7"), "10.1.0.0/16"), "as a dual socket tells IPv4"


def test_entry_for_a_network_decides() -> None:
    everywhere = acl(Operation.READ, Resource.TOPIC, "t", host="10.0.0.0/8")
    elsewhere = acl(Operation.READ, Resource.TOPIC, "t", host="10.0.1.0/24")
    denied = acl(Operation.READ, Resource.TOPIC, "t", host="10.0.0.0/24", permission=DENY)
    assert subject(everywhere).may(Operation.READ, Resource.TOPIC, "t")
    assert not subject(elsewhere).may(Operation.READ, Resource.TOPIC, "t")
    assert not subject(everywhere, denied).may(Operation.READ, Resource.TOPIC, "t")


@pytest.mark.parametrize(
    ("level", "host", "error", "words"),
    [
        (33, "10.1.0.0/16", ErrorCode.NONE, None),
        (32, "10.1.0.0/99", ErrorCode.INVALID_REQUEST, "Invalid CIDR notation '10.1.0.0/99'"),
        (31, "10.1.0.0/16", ErrorCode.UNSUPPORTED_VERSION, "version 4.4-IV1 or higher."),
        (31, "10.1.0.1", ErrorCode.NONE, None),
    ],
)
def test_network_may_be_named_from_a_level_on(
    level: int, host: str, error: ErrorCode, words: str | None
) -> None:
    image = step(cluster(1), FeatureLevelRecord(name="metadata.version", feature_level=level))
    decision: Any = create(image, asked(host=host))
    (result,) = decision.response.results
    assert result.error_code is error
    assert len(decision.changes) == int(error is ErrorCode.NONE)
    assert words is None or words in result.error_message
