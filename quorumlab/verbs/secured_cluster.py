"""Secures a local cluster before it starts: certificates, a user, and the files of clients.

Made once, the secrets with mode 0600 in a directory of 0700; a later `up` goes on with what is
there. Controllers are formatted here, with the administrator's credentials among the first records:
no password is ever on a command line.
"""

import os
import secrets
from dataclasses import replace
from pathlib import Path

from jepsen_like.real.credentials import Credentials
from jepsen_like.real.layout import ClusterError, ClusterLayout, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.secured import (
    ADMIN,
    SCRAM,
    SCRAM_LOGIN_MODULE,
    SSL,
    SecurityFiles,
    encrypts,
    node_name,
)
from quorumlab.client_properties import (
    broker_settings,
    controller_settings,
    librdkafka_settings,
    node_settings,
)
from quorumlab.config import load
from quorumlab.security.certificates import LOCAL_NAMES, Authority
from quorumlab.security.first_credentials import first_credential
from quorumlab.verbs.format import first_voters, format_node, released

__all__ = ["secure", "with_credentials"]

_SECRET_BYTES = 18


def secure(cluster: LocalCluster) -> Authority | None:
    """Returns the authority if it was made now: nobody has its key but who gets it here.

    Does nothing for a plain cluster. Raises ClusterError if half of it is gone.
    """
    layout, files = cluster.layout, cluster.layout.security_files
    if not layout.security:
        return None
    if files.client.exists():
        _refuse_gaps(layout, files)
        return None
    authority = None
    if not files.http_users.exists():
        authority = _make_secrets(layout, files)
    password = _password(files)
    if layout.security != SSL:
        _format(cluster, password)
    _write_clients(layout, files, password)
    return authority


def with_credentials(cluster: LocalCluster) -> Credentials:
    """Secures it, and tells what those show who ask its nodes.

    While whoever called this lives, its nodes can have new certificates.
    """
    authority = secure(cluster)
    brokers = broker_settings(cluster.layout)

    def issue(node_id: int) -> bytes:
        assert authority is not None, node_id
        return _signed(authority, cluster.layout.node(node_id))

    return Credentials(
        brokers=brokers,
        controllers=controller_settings(cluster.layout),
        as_node=lambda node_id: node_settings(cluster.layout, node_id),
        pages=cluster.page_access,
        librdkafka=librdkafka_settings(brokers),
        issue=None if authority is None else issue,
    )


def _refuse_gaps(layout: ClusterLayout, files: SecurityFiles) -> None:
    needed = [files.authority, files.admin, files.http_users, files.librdkafka]
    needed += [files.controller_client, *(files.node(node.id) for node in layout.nodes)]
    gone = [path for path in needed if not path.exists()]
    if gone:
        raise ClusterError(
            f"{gone[0]} is gone, and nobody can make it again: bring it back, or begin anew in "
            "another --dir"
        )


def _make_secrets(layout: ClusterLayout, files: SecurityFiles) -> Authority:
    """The password last: it says that all is there. Who knows it may also read the pages."""
    authority = Authority.new(f"quorumlab {layout.cluster_id}")
    files.directory.mkdir(mode=0o700, exist_ok=True)
    for node in layout.nodes:
        _write(files.node(node.id), _signed(authority, node))
    _write(files.admin, authority.signed_pem(ADMIN))
    _write(files.authority, authority.pem)
    if layout.security != SSL:
        _write(files.decoy_secret, f"{secrets.token_urlsafe(_SECRET_BYTES)}\n".encode())
    password = secrets.token_urlsafe(_SECRET_BYTES)
    _write(files.http_users, f"{ADMIN}:{password}\n".encode())
    return authority


def _signed(authority: Authority, node: NodeLayout) -> bytes:
    names = dict.fromkeys((*LOCAL_NAMES, node.host))
    return authority.signed_pem(node_name(node.id), names)


def _password(files: SecurityFiles) -> str:
    return files.http_users.read_text().rstrip("\n").partition(":")[2]


def _format(cluster: LocalCluster, password: str) -> None:
    """The record is in every controller's directory: any may be the first to lead."""
    layout = cluster.layout
    told = f"{SCRAM}=[name={ADMIN},password={password}]"
    first = replace(released(layout.release_version or None), others=(first_credential(told),))
    for node in layout.controllers:
        cluster.configure(node)
        config = load(node.config, {})
        voters = first_voters(layout.initial_controllers or None, config)
        format_node(config, layout.cluster_id, ignore_formatted=True, voters=voters, first=first)


def _write_clients(layout: ClusterLayout, files: SecurityFiles, password: str) -> None:
    """`client.properties` last: it says that all is there."""
    kafka = {
        "bootstrap.servers": layout.bootstrap_servers,
        "security.protocol": layout.security.upper(),
    }
    other = dict(kafka)
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(files.authority)}
    shown = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(files.admin)}
    if encrypts(layout.security):
        kafka |= trust
        other["ssl.ca.location"] = str(files.authority)
    if layout.security == SSL:
        kafka |= shown
        other |= {
            "ssl.certificate.location": str(files.admin),
            "ssl.key.location": str(files.admin),
        }
    else:
        login = f'{SCRAM_LOGIN_MODULE} required username="{ADMIN}" password="{password}";'
        kafka |= {"sasl.mechanism": SCRAM, "sasl.jaas.config": login}
        other |= {
            "sasl.mechanism": SCRAM,
            "sasl.username": ADMIN,
            "sasl.password": password,
        }
    _write_properties(files.librdkafka, other)
    _write_properties(files.controller_client, {"security.protocol": "SSL", **trust, **shown})
    _write_properties(files.client, kafka)


def _write_properties(path: Path, pairs: dict[str, str]) -> None:
    _write(path, "".join(f"{key}={value}\n" for key, value in pairs.items()).encode())


def _write(path: Path, content: bytes) -> None:
    """Nobody else may read it, not even for a moment."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(content)
