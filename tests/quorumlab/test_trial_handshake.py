"""Stores are tried before they are used: by a real handshake, in memory."""

from itertools import pairwise

import pytest

from quorumlab.mode_config import ConfigError
from quorumlab.security.changing_security import ChangingSecurity
from quorumlab.security.scram_users import ScramUsers
from quorumlab.security.trial_handshake import Ends, check_handshakes, ends_between_brokers
from tests.quorumlab.test_tls_settings import config
from tests.wire.security.certificates import Certified, authority, certified

NEXT = authority("CN=next authority")
BOTH = authority().certificate_pem + NEXT.certificate_pem


def ends(shown: Certified, trusted: str, **others: str) -> Ends:
    found = ends_between_brokers(
        config(
            ssl__keystore__certificate__chain=shown.certificate_pem,
            ssl__keystore__key=shown.key_pem(),
            ssl__truststore__certificates=trusted,
            **others,
        )
    )
    assert found is not None
    return found


OLD, NEW = certified(hosts=("elsewhere",)), certified(by=NEXT)
OF_OLD, OF_NEXT = authority().certificate_pem, NEXT.certificate_pem


@pytest.mark.parametrize("asks", ["none", "required"])
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_an_authority_is_replaced_in_three_steps(asks: str, version: str) -> None:
    settings = {"ssl.client.auth": asks, "ssl.protocol": version}
    steps = [
        ends(OLD, OF_OLD, **settings),
        ends(OLD, BOTH, **settings),
        ends(NEW, BOTH, **settings),
        ends(NEW, OF_NEXT, **settings),
    ]
    check_handshakes(steps[0], steps[0])
    for old, new in pairwise(steps):
        check_handshakes(old, new)
    for old, new in ((steps[0], steps[2]), (steps[2], steps[0]), (steps[1], steps[3])):
        with pytest.raises(ConfigError, match="between brokers, a node with"):
            check_handshakes(old, new)


def test_a_node_that_would_refuse_itself_is_told_so() -> None:
    lonely = ends(NEW, OF_OLD)
    with pytest.raises(ConfigError, match=r"its own stores cannot connect .*: unable to get local"):
        check_handshakes(lonely, lonely)


def test_a_node_that_would_refuse_itself_does_not_start() -> None:
    stores = {
        "ssl.keystore.certificate.chain": NEW.certificate_pem,
        "ssl.keystore.key": NEW.key_pem(),
    }
    with pytest.raises(ConfigError, match="its own stores cannot connect"):
        ChangingSecurity(config(**stores), ScramUsers(lambda: None, lambda: b""), print)


def test_protocols_have_to_meet() -> None:
    old = ends(OLD, OF_OLD, **{"ssl.protocol": "TLSv1.2"})
    new = ends(OLD, OF_OLD, **{"ssl.enabled.protocols": "TLSv1.3"})
    with pytest.raises(ConfigError, match="stores in use cannot connect"):
        check_handshakes(old, new)


def test_nothing_is_tried_where_brokers_speak_no_tls() -> None:
    protocols = {"listener.security.protocol.map": "OUT:SSL,IN:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    assert ends_between_brokers(config(**protocols)) is None
