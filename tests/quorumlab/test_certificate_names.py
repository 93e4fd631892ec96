"""Which certificate may take the place of another while a node runs (KIP-978)."""

import pytest

from quorumlab.config import NodeConfig
from quorumlab.mode_config import ConfigError
from quorumlab.security.certificate_names import certificate_names, check_names
from tests.quorumlab.test_tls_settings import config
from tests.wire.security.certificates import Certified, certified

HOSTS = ("localhost", "127.0.0.1")


def showing(new: Certified, **others: str) -> NodeConfig:
    own = {"ssl.keystore.certificate.chain": new.certificate_pem, "ssl.keystore.key": new.key_pem()}
    return config(**{f"listener.name.out.{key}": value for key, value in own.items()}, **others)


OLD = certificate_names(showing(certified()))["OUT"]


def test_listeners_with_tls_have_names() -> None:
    assert sorted(certificate_names(config())) == ["IN", "OUT"]
    assert OLD.subject == "CN=node"
    assert OLD.alternatives == {"DNSName:localhost", "IPAddress:127.0.0.1"}


@pytest.mark.parametrize("new", [certified(), certified(hosts=(*HOSTS, "more"))])
def test_new_certificate_with_the_same_names_is_taken(new: Certified) -> None:
    assert check_names(showing(new), "OUT", OLD).subject == OLD.subject


@pytest.mark.parametrize(
    ("new", "key", "words"),
    [
        (certified("CN=other"), "ssl.allow.dn.changes", "DistinguishedName does not match"),
        (certified(hosts=("127.0.0.1",)), "ssl.allow.san.changes", "lacks DNSName:localhost"),
    ],
)
def test_another_name_is_taken_only_where_it_may_change(
    new: Certified, key: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        check_names(showing(new), "OUT", OLD)
    check_names(showing(new, **{key: "true"}), "OUT", OLD)
    check_names(showing(new, **{f"listener.name.out.{key}": "true"}), "OUT", OLD)
