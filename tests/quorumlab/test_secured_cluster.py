"""A secured local cluster before it starts: its secrets, its nodes' properties, clients' files."""

import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.pages import page_access
from quorum.core.storage import METADATA_LOG
from quorum.node.directories import open_directories
from quorumlab.client_properties import broker_settings, controller_settings, librdkafka_of
from quorumlab.config import load, parse_properties
from quorumlab.first_records import first_records
from quorumlab.verbs.secured_cluster import secure, with_credentials
from wire.metadata_records import UserScramCredentialRecord
from wire.security.scram import SCRAM_SHA_512
from wire.security.security_protocol import SecurityProtocol


def secured(directory: Path, security: str = "sasl_ssl", **wanted: Any) -> LocalCluster:
    shape: dict[str, Any] = {"controllers": 1, "brokers": 2, **wanted}
    cluster = LocalCluster.create(directory, security=security, **shape)
    secure(cluster)
    return cluster


def test_nobody_else_may_read_what_is_secret(tmp_path: Path) -> None:
    cluster = secured(tmp_path)
    files = cluster.layout.security_files
    secret = [*files.directory.iterdir(), files.client, files.controller_client, files.librdkafka]
    assert len(secret) == 3 + 4 + 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in secret} == {0o600}
    assert stat.S_IMODE(files.directory.stat().st_mode) == 0o700
    (password,) = {
        broker_settings(cluster.layout).password,
        librdkafka_of(cluster.layout)["sasl.password"],
    }
    configs = [node.config.read_text() for node in cluster.layout.controllers]
    assert not any(password in text for text in configs)


def test_nodes_show_certificates_and_clients_a_password(tmp_path: Path) -> None:
    cluster, decoy_keys = secured(tmp_path), set()
    for node in cluster.layout.nodes:
        cluster.configure(node)
        assert stat.S_IMODE(node.config.stat().st_mode) == 0o600
        config = load(node.config, {})
        decoy_keys.add(config.text("quorumlab.scram.decoy.secret"))
        assert config.protocols["CONTROLLER"] is SecurityProtocol.SSL
        if node.is_broker:
            assert config.inter_broker_listener == "BROKERS"
            assert config.protocols["BROKERS"] is SecurityProtocol.SSL
            assert config.protocols["CLIENTS"] is SecurityProtocol.SASL_SSL
            assert node.port in {each.port for each in config.listeners if each.name == "CLIENTS"}
    assert controller_settings(cluster.layout).protocol is SecurityProtocol.SSL
    (decoy_key,) = decoy_keys
    assert decoy_key
    assert page_access("sasl_ssl", cluster.layout.security_files) is not None


@pytest.mark.parametrize("shape", [{}, {"first_voters": 1}, {"combined": True}])
def test_the_first_records_know_the_administrator(shape: dict[str, Any], tmp_path: Path) -> None:
    cluster = secured(tmp_path, **shape)
    (controller,) = cluster.layout.controllers
    opened = open_directories(str(controller.data), [str(controller.data)], node_id=controller.id)
    (record,) = first_records(opened.metadata).others
    opened.metadata.close()
    assert isinstance(record, UserScramCredentialRecord)
    password = broker_settings(cluster.layout).password
    salted = SCRAM_SHA_512.salted(password, record.salt, record.iterations)
    assert SCRAM_SHA_512.hmac(salted, b"Server Key") == record.server_key
    has_log = (controller.data / METADATA_LOG).is_dir()
    assert has_log == bool(cluster.layout.dynamic)


def test_who_secures_a_cluster_can_give_its_nodes_other_certificates(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path, controllers=1, brokers=1, security="sasl_ssl")
    credentials = with_credentials(cluster)
    files = cluster.layout.security_files
    assert credentials.issue is not None
    authority = x509.load_pem_x509_certificate(files.authority.read_bytes())
    old, new = (
        x509.load_pem_x509_certificate(pem)
        for pem in (files.node(1).read_bytes(), credentials.issue(1))
    )
    new.verify_directly_issued_by(authority)
    assert (new.subject, new.serial_number == old.serial_number) == (old.subject, False)
    names = [
        each.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        for each in (old, new)
    ]
    assert names[0] == names[1]
    secrets = {broker_settings(cluster.layout).password, files.node(1).read_text()}
    assert not any(secret in repr(credentials) for secret in secrets)
    assert with_credentials(cluster).issue is None, "the authority's key is gone"


@pytest.mark.parametrize("security", ["ssl", "sasl_plaintext"])
def test_clients_are_told_what_their_listener_wants(security: str, tmp_path: Path) -> None:
    cluster = secured(tmp_path, security)
    told = parse_properties(cluster.layout.security_files.client.read_text())
    other = parse_properties(cluster.layout.security_files.librdkafka.read_text())
    for each in (told, other):
        assert each["bootstrap.servers"] == cluster.layout.bootstrap_servers
        assert each["security.protocol"] == security.upper()
        assert ("sasl.mechanism" in each) == (security != "ssl")
    assert ("ssl.keystore.location" in told) == (security == "ssl")
    assert ("ssl.truststore.location" in told) == (security == "ssl")
    access = page_access(security, cluster.layout.security_files)
    assert access is not None
    assert (access.authorities is not None) == (security == "ssl")


def test_what_is_there_is_kept_and_what_is_gone_is_missed(tmp_path: Path) -> None:
    cluster = secured(tmp_path)
    files = cluster.layout.security_files
    before = {path: path.read_bytes() for path in files.directory.iterdir()}
    again = LocalCluster.create(tmp_path)
    assert again.layout == cluster.layout
    secure(again)
    assert {path: path.read_bytes() for path in files.directory.iterdir()} == before
    files.node(1).unlink()
    with pytest.raises(ClusterError, match=r"node-1\.pem is gone"):
        secure(again)


def test_secrets_outlive_an_up_that_was_killed_before_it_told_clients(tmp_path: Path) -> None:
    cluster = secured(tmp_path)
    password = broker_settings(cluster.layout).password
    cluster.layout.security_files.client.unlink()
    secure(LocalCluster.open(tmp_path))
    assert broker_settings(cluster.layout).password == password


def test_a_plain_cluster_gets_nothing(tmp_path: Path) -> None:
    cluster = secured(tmp_path, "")
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]
    assert broker_settings(cluster.layout).protocol is SecurityProtocol.PLAINTEXT
    with pytest.raises(ClusterError, match="whose security is none, not ssl"):
        LocalCluster.create(tmp_path, security="ssl")
