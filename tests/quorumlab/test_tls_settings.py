"""server.properties on TLS and on connections: what a listener has, and what is refused by name."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from quorumlab.config import NodeConfig, node_config, parse_properties
from quorumlab.mode_config import ConfigError
from quorumlab.security.connection_security import client_security, server_security
from quorumlab.security.scram_users import ScramUsers
from quorumlab.security.tls_settings import server_limits
from quorumlab.settings import controller_config
from tests.wire.security.certificates import authority, certified
from wire.security.connection_count import ConnectionLimits

NODE = certified()


def config(**others: str) -> NodeConfig:
    changes = {key.replace("__", "."): value for key, value in others.items()}
    given = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "OUT://:9092,IN://:9094,CONTROLLER://:9093",
        "inter.broker.listener.name": "IN",
        "listener.security.protocol.map": "OUT:SSL,IN:SSL,CONTROLLER:PLAINTEXT",
        "log.dirs": "/data",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": NODE.certificate_pem,
        "ssl.keystore.key": NODE.key_pem(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().certificate_pem,
    }
    return node_config({**given, **changes})


no_users = ScramUsers(lambda: None, lambda: b"")


def test_a_listener_s_own_settings_win() -> None:
    given = {"listener.name.out.ssl.client.auth": "required", "ssl.protocol": "TLSv1.2"}
    told = config(**given)
    assert told.warnings == ()
    contexts = []
    for listener in ("OUT", "IN"):
        tls = server_security(told, listener, no_users).tls
        assert tls is not None
        contexts.append(tls.context)
    assert [context.verify_mode.name for context in contexts] == ["CERT_REQUIRED", "CERT_NONE"]
    assert [context.maximum_version.name for context in contexts] == ["TLSv1_2", "TLSv1_2"]
    assert server_security(told, "CONTROLLER", no_users).tls is None


@pytest.mark.parametrize("newline", ["\\n\\\n  ", " ", "\\n"])
def test_pem_may_stand_in_a_file_as_kafka_s_do(newline: str) -> None:
    keys = {
        "ssl.keystore.certificate.chain": NODE.certificate_pem,
        "ssl.keystore.key": NODE.key_pem(),
    }
    text = "".join(f"{key}={pem.replace(chr(10), newline)}\n\n" for key, pem in keys.items())
    assert server_security(config(**parse_properties(text)), "OUT", no_users).tls is not None


def test_peers_are_dialled_as_their_listener_is_secured() -> None:
    security_of = client_security(config())
    between_brokers, to_controllers = security_of("replica-0"), security_of("forwarding")
    assert between_brokers.tls is not None
    assert between_brokers.tls.check_hostname
    assert to_controllers.tls is None
    unchecked = client_security(
        config(**{"listener.name.in.ssl.endpoint.identification.algorithm": ""})
    )
    context = unchecked("replica-0").tls
    assert context is not None
    assert not context.check_hostname


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"ssl.keystore.certificate.chain": "", "ssl.keystore.key": ""},
            "listener OUT: ssl.keystore.location: a listener that speaks TLS needs",
        ),
        ({"ssl.keystore.location": "/gone"}, "leave one of them out"),
        ({"ssl.principal.mapping.rules": "x"}, "ssl.principal.mapping.rules: expected RULE"),
        ({"listener.name.out.ssl.client.auth": "maybe"}, "ssl.client.auth=maybe: write none"),
    ],
)
def test_a_listener_that_cannot_be_secured_is_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        server_security(config(**changes), "OUT", no_users)
    assert words in str(caught.value)


def test_who_cannot_dial_its_peers_is_refused(tmp_path: Path) -> None:
    given = {
        "ssl.truststore.certificates": "",
        "ssl.truststore.location": str(tmp_path / "gone"),
    }
    with pytest.raises(ConfigError, match=r"to dial listener IN: ssl\.truststore\.location="):
        client_security(config(**given))


def test_limits_are_kafka_s_for_each_listener() -> None:
    told = config(
        **{
            "max.connections": "7",
            "listener.name.in.max.connections": "5",
            "max.connections.per.ip": "3",
            "max.connections.per.ip.overrides": "10.0.0.1:2,[::1]:4",
            "connections.max.idle.ms": "1500",
            "quorumlab.first.request.timeout.ms": "250",
        }
    )
    out, between = server_limits(told, "OUT"), server_limits(told, "IN")
    hosts = {"10.0.0.1": 2, "::1": 4}
    assert between.connections == ConnectionLimits(
        of_all=7, of_listener=5, of_host=3, of_hosts=hosts, is_protected=True
    )
    assert out.connections == replace(
        between.connections, of_listener=out.connections.of_listener, is_protected=False
    )
    assert 7 < out.connections.of_listener < 2**31 - 1, "what the process can have"
    assert (out.idle_seconds, out.first_frame_seconds) == (1.5, 0.25)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("max.connections", "-1", "Invalid value -1 for configuration max.connections"),
        ("listener.name.out.max.connections", "x", "Invalid value x for configuration"),
        ("max.connections.per.ip.overrides", "x", "'x' is not address:limit"),
        ("listener.name.out.quorumlab.first.request.timeout.ms", "x", "expected a whole number"),
    ],
)
def test_limits_that_are_none_are_refused(key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        server_limits(config(**{key: value}), "OUT")
    assert words in str(caught.value) or "must be at least" in str(caught.value)


def test_no_more_connections_are_kept_than_the_process_can_have() -> None:
    assert server_limits(config(), "OUT").connections.of_all < 2**31 - 1


def test_passwords_are_not_shown() -> None:
    told = config(**{"ssl.keystore.password": "hush", "listener.name.out.ssl.key.password": "hush"})
    shown = controller_config(told, cluster_id="c", random=Random(1))
    assert "hush" not in repr(told) + repr(shown)
