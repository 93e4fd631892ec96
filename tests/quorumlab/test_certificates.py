"""Certificates of a throw-away authority, judged by `ssl` in handshakes over a socket pair."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from cryptography.x509 import BasicConstraints, load_pem_x509_certificate

from quorumlab.security.certificates import Authority


@contextmanager
def connected(server: ssl.SSLContext) -> Iterator[socket.socket]:
    """To a server that shakes hands, and answers one byte with the name of its client."""
    near, far = socket.socketpair()
    near.settimeout(5)
    thread = Thread(target=_serve, args=(far, server))
    thread.start()
    with near:
        yield near
    thread.join()


def _serve(far: socket.socket, context: ssl.SSLContext) -> None:
    far.settimeout(5)
    try:
        with far, context.wrap_socket(far, server_side=True) as channel:
            channel.recv(1)
            shown = channel.getpeercert() or {}
            channel.sendall(repr(shown.get("subject")).encode())
    except (ssl.SSLError, OSError):
        pass  # the client has the reason


def server_context(authority: Authority, path: Path, *, wants_certificate: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode() if wants_certificate else None
    )
    context.verify_mode = ssl.CERT_REQUIRED if wants_certificate else ssl.CERT_NONE
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    path.write_bytes(authority.signed_pem("node-1"))
    context.load_cert_chain(path)
    return context


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_a_node_is_itself_by_every_local_name_and_so_is_its_client(
    name: str, tmp_path: Path
) -> None:
    authority = Authority.new("test")
    client = ssl.create_default_context(cadata=authority.pem.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    own = tmp_path / "client.pem"
    own.write_bytes(authority.signed_pem("node-2"))
    client.load_cert_chain(own)
    server = server_context(authority, tmp_path / "server.pem", wants_certificate=True)
    with connected(server) as near, client.wrap_socket(near, server_hostname=name) as channel:
        channel.sendall(b"?")
        assert channel.recv(200) == b"((('commonName', 'node-2'),),)"


def test_another_authority_and_another_name_are_refused(tmp_path: Path) -> None:
    authority, other = Authority.new("test"), Authority.new("test")
    server = server_context(authority, tmp_path / "server.pem", wants_certificate=False)
    for trusted, name in ((other, "localhost"), (authority, "example.org")):
        client = ssl.create_default_context(cadata=trusted.pem.decode())
        with connected(server) as near, pytest.raises(ssl.SSLCertVerificationError):
            client.wrap_socket(near, server_hostname=name)


def test_nodes_sign_no_certificates_and_the_key_that_does_is_not_told() -> None:
    authority = Authority.new("test")
    assert b"PRIVATE KEY" not in authority.pem
    of_node = load_pem_x509_certificate(authority.signed_pem("node-1"))
    limits = [
        each.extensions.get_extension_for_class(BasicConstraints).value
        for each in (authority.certificate, of_node)
    ]
    assert [(each.ca, each.path_length) for each in limits] == [(True, 0), (False, None)]
