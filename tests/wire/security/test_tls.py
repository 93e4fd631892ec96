"""TLS over real sockets: who may connect, who may not and why; certificates that change."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.wire.security.certificates import (
    DAY,
    NOW,
    Certified,
    authority,
    certified,
    self_signed,
)
from tests.wire.security.tls_nodes import (
    HOST,
    NODE,
    Node,
    ask,
    connected,
    dialling,
    key_store,
    listening,
    trust_store,
    until,
)
from wire.security.connection_count import ConnectionLimits
from wire.security.principals import ANONYMOUS, Principal
from wire.security.protocols import ClientSecurity, ServerSecurity, ServerTls
from wire.security.security_protocol import SecurityProtocol
from wire.security.stores import StoreError, StoreSettings
from wire.security.tls import TlsSettings, client_context, server_context
from wire.serving import ServerLimits
from wire.tcp_client import ConnectionPool, SendFailure

FOREIGN = authority("CN=foreign authority")
ALICE = certified("CN=alice,OU=users", hosts=())


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


# --- who may connect --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client_auth", "who", "principal"),
    [
        ("none", ALICE, "User:ANONYMOUS"),  # nobody has asked her
        ("requested", None, "User:ANONYMOUS"),
        ("requested", ALICE, "User:CN=alice,OU=users"),
        ("required", ALICE, "User:CN=alice,OU=users"),
    ],
)
def test_a_client_is_who_its_certificate_says(
    client_auth: str, who: Certified | None, principal: str
) -> None:
    async def test() -> None:
        async with Node(listening(client_auth=client_auth)) as node:
            assert await connected(node, dialling(who)) == principal

    run(test)


def test_rules_make_users_of_names() -> None:
    async def test() -> None:
        security = listening(client_auth="required", rules="RULE:^CN=(.*?),.*$/$1/U")
        async with Node(security) as node:
            assert await connected(node, dialling(ALICE)) == "User:ALICE"

    run(test)


def eve(by: Certified | None = None) -> ClientSecurity:
    return dialling(certified("CN=eve", by=by, hosts=()) if by else self_signed("CN=eve"))


@dataclass(frozen=True)
class Refused:
    """What the listener is, who comes, and the words of either side's log."""

    words: str
    client: Callable[[], ClientSecurity] = dialling
    node: Callable[[], ServerSecurity] = listening


REQUIRED = partial(listening, client_auth="required")
REFUSED = {
    "no certificate": Refused("the client showed no certificate", node=REQUIRED),
    "a foreign one": Refused(
        "the certificate of the peer is not accepted: unable to get local issuer",
        partial(eve, FOREIGN),
        REQUIRED,
    ),
    "a self-signed one": Refused(
        "the certificate of the peer is not accepted: self-signed certificate", eve, REQUIRED
    ),
    "a name without a rule": Refused(
        "its certificate names nobody: no rule of",
        partial(dialling, ALICE),
        partial(REQUIRED, rules="RULE:^OU=(.*)$/$1/"),
    ),
    "a plain client": Refused("the peer speaks no TLS", ClientSecurity),
    "TLS on a plain listener": Refused(
        "a TLS handshake on a listener that speaks PLAINTEXT", node=ServerSecurity
    ),
    "no version in common": Refused(
        "no version of TLS in common",
        partial(dialling, enabled_protocols=("TLSv1.2",), protocol="TLSv1.2"),
        partial(listening, enabled_protocols=("TLSv1.3",)),
    ),
    "no cipher in common": Refused(
        "no cipher suite in common",
        partial(dialling, cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)),
        partial(listening, cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)),
    ),
    "a node that is not trusted": Refused(
        "not connected to=127.0.0.1:", node=lambda: listening(certified(by=FOREIGN))
    ),
    "a node of another name": Refused(
        "IP address mismatch, certificate is not valid for '127.0.0.1'",
        node=lambda: listening(certified(hosts=("elsewhere",))),
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_who_may_not_connect_is_told_in_one_line(
    case: Refused, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with Node(case.node()) as node:
            assert await connected(node, case.client()) is SendFailure.DISCONNECTED
            await until(lambda: not (node.server.connection_count or node.server.handshake_count))

    with caplog.at_level(logging.WARNING):
        run(test)
    told = [each.getMessage() for each in caplog.records if case.words in each.getMessage()]
    assert len(told) == 1, caplog.text


def test_an_expired_client_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    late = certified("CN=late", begin=NOW - 2 * DAY, end=NOW - DAY, hosts=())
    settings = TlsSettings(key_store=key_store(late), trust_store=trust_store(authority()))
    context = client_context(settings, NOW - 1.5 * DAY)  # it was good then

    async def test() -> None:
        async with Node(listening(client_auth="required")) as node:
            client = ClientSecurity(protocol=SecurityProtocol.SSL, tls=context)
            assert await connected(node, client) is SendFailure.DISCONNECTED

    run(test)
    assert "certificate has expired" in caplog.text


def test_a_certificate_can_be_trusted_without_its_authority() -> None:
    async def test() -> None:
        async with Node(listening()) as node:
            assert await connected(node, dialling(trusts=NODE)) == str(ANONYMOUS)
            assert await connected(node, dialling(trusts=ALICE)) is SendFailure.DISCONNECTED

    run(test)


def test_without_identification_any_name_will_do() -> None:
    async def test() -> None:
        async with Node(listening(certified(hosts=("elsewhere",)))) as node:
            client = dialling(identification="")
            assert await connected(node, client) == str(ANONYMOUS)

    run(test)


def test_the_name_is_that_which_peers_are_told_not_the_one_of_a_proxy() -> None:
    async def test() -> None:
        async with Node(listening(certified(hosts=("broker-1.example",)))) as node:
            client = dialling()
            dialled = {("broker-1.example", 9093): (HOST, node.port)}
            async with ConnectionPool(
                client_id="c", security_of=lambda _: client, dial_overrides=dialled
            ) as pool:
                assert await ask(pool, 9093, "broker-1.example") == str(ANONYMOUS)
            assert await connected(node, client) is SendFailure.DISCONNECTED

    run(test)


def test_versions_and_ciphers_are_those_that_were_asked_for() -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"

    async def test() -> None:
        async with Node(listening(cipher_suites=(suite,))) as node:
            context = dialling().tls
            _, writer = await asyncio.open_connection(
                HOST, node.port, ssl=context, server_hostname="localhost"
            )
            spoken = writer.get_extra_info("ssl_object")
            assert spoken.version() == "TLSv1.2"
            assert spoken.cipher()[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"
            writer.close()
            await writer.wait_closed()

    run(test)


# --- handshakes that do not end ---------------------------------------------------------------


async def closed(peer: socket.socket) -> None:
    """The other side has closed it, one way or another."""
    try:
        while await asyncio.get_running_loop().sock_recv(peer, 4096):
            pass
    except ConnectionError:
        pass


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "the TLS handshake took too long"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "the TLS handshake took too long"),
        (b"\x00\x00\x00\x0a\x00\x12\x00\x00", "the peer speaks no TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request on a listener of TLS"),
    ],
)
def test_a_handshake_that_does_not_end_is_ended(
    sent: bytes, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with Node(listening(seconds=0.05)) as node:
            with socket.create_connection((HOST, node.port)) as peer:
                peer.setblocking(False)
                peer.sendall(sent)
                await closed(peer)
            assert node.server.handshake_count == 0

    run(test)
    assert words in caplog.text


def test_a_client_that_leaves_within_its_handshake_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with Node(listening()) as node:
            with socket.create_connection((HOST, node.port)) as peer:
                peer.sendall(b"\x16\x03\x01\x02\x00\x01")
            await until(lambda: caplog.records)
            assert node.server.handshake_count == 0

    run(test)
    assert "the peer left within the TLS handshake" in caplog.text


def test_a_client_that_only_looks_whether_anybody_listens_is_not_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with Node(listening()) as node:
            with socket.create_connection((HOST, node.port)):
                await until(lambda: node.server.handshake_count)
            await until(lambda: not node.server.handshake_count)

    run(test)
    assert caplog.text == ""


def test_a_stop_waits_for_no_handshake() -> None:
    async def test() -> None:
        node = Node(listening())
        async with node:
            peer = socket.create_connection((HOST, node.port))
            await until(lambda: node.server.handshake_count)
        peer.close()
        assert node.server.handshake_count == 0

    run(test)


def test_handshakes_count_as_connections(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with Node(listening(), ServerLimits(connections=ConnectionLimits(of_host=1))) as node:
            with socket.create_connection((HOST, node.port)):
                await until(lambda: node.server.handshake_count)
                assert await connected(node, dialling()) is SendFailure.DISCONNECTED
            await until(lambda: not node.server.handshake_count)
            assert await connected(node, dialling()) == str(ANONYMOUS)  # there is room again

    run(test)
    assert "more than 1 connections of one address" in caplog.text


# --- certificates that change -----------------------------------------------------------------


def test_connections_outlive_the_certificates_that_they_began_with() -> None:
    async def test() -> None:
        async with Node(listening()) as node:
            of_before, of_after = dialling(), dialling(trusts=FOREIGN)
            async with ConnectionPool(client_id="c", security_of=lambda _: of_before) as pool:
                assert await ask(pool, node.port) == str(ANONYMOUS)
                node.server.security = listening(certified(by=FOREIGN))
                assert await ask(pool, node.port) == str(ANONYMOUS)
                assert node.server.connection_count == 1
            assert await connected(node, of_before) is SendFailure.DISCONNECTED
            assert await connected(node, of_after) == str(ANONYMOUS)

    run(test)


def test_who_dials_again_shows_its_new_certificate() -> None:
    async def test() -> None:
        now = dialling(ALICE)
        async with (
            Node(listening(client_auth="required")) as node,
            ConnectionPool(client_id="c", security_of=lambda _: now) as pool,
        ):
            assert await ask(pool, node.port) == "User:CN=alice,OU=users"
            now = dialling(certified("CN=alice,OU=admins", hosts=()))
            node.hang_up()
            told: object = SendFailure.DISCONNECTED
            while told is SendFailure.DISCONNECTED:
                await asyncio.sleep(0.01)
                told = await ask(pool, node.port)
            assert told == "User:CN=alice,OU=admins"

    run(test)


# --- stores -----------------------------------------------------------------------------------


def test_pkcs12_and_files_and_passwords_serve_as_pem_does(tmp_path: Path) -> None:
    password = "päss word"
    (tmp_path / "node.p12").write_bytes(NODE.pkcs12(password))
    (tmp_path / "node.pem").write_text(NODE.pem)
    (tmp_path / "secret.pem").write_text(NODE.key_pem(password) + NODE.certificate_pem)
    stores = [
        StoreSettings(
            name="ssl.keystore",
            type="PKCS12",
            location=str(tmp_path / "node.p12"),
            password=password,
        ),
        StoreSettings(name="ssl.keystore", type="PEM", location=str(tmp_path / "node.pem")),
        StoreSettings(
            name="ssl.keystore",
            type="PEM",
            location=str(tmp_path / "secret.pem"),
            key_password=password,
        ),
    ]

    async def test() -> None:
        for store in stores:
            assert password not in repr(store)
            context = server_context(TlsSettings(key_store=store), NOW)
            tls = ServerTls(context=context, principal_of=lambda _: Principal("User", "x"))
            async with Node(ServerSecurity(protocol=SecurityProtocol.SSL, tls=tls)) as node:
                assert await connected(node, dialling()) == "User:x"

    run(test)


def test_a_key_is_nowhere_once_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[tuple[int, int, bool]] = []
    load = ssl.SSLContext.load_cert_chain

    def looked_at(context: ssl.SSLContext, path: Path, **others: Any) -> None:
        modes = path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777
        seen.append((*modes, "ENCRYPTED" in path.read_text()))
        load(context, path, **others)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", looked_at)
    server_context(TlsSettings(key_store=key_store(NODE)), NOW)
    assert seen == [(0o700, 0o600, True)]
    assert list(tmp_path.iterdir()) == []


def stores_refused(path: Path) -> list[tuple[StoreSettings, datetime, str]]:
    other = certified("CN=other")
    (path / "jks").write_bytes(bytes.fromhex("feedfeed00000002"))
    (path / "p12").write_bytes(NODE.pkcs12("right"))
    (path / "encrypted").write_text(NODE.key_pem("right") + NODE.certificate_pem)
    (path / "certificates").write_text(NODE.certificate_pem)
    (path / "mixed").write_text(other.key_pem() + NODE.certificate_pem)
    (path / "good").write_text(NODE.pem)
    (path / "text").write_text("nothing of the kind")

    def at(name: str, **others: Any) -> StoreSettings:
        return StoreSettings(name="ssl.keystore", location=str(path / name), **others)

    return [
        (at("gone"), NOW, "cannot be read: No such file"),
        (at("jks"), NOW, "convert it by keytool -importkeystore"),
        (at("p12", password="wrong"), NOW, "ssl.keystore.password is wrong"),
        (at("p12"), NOW, "ssl.keystore.password is missing"),
        (at("p12", type="PEM"), NOW, "set ssl.keystore.type=PKCS12"),
        (at("good", type="BKS"), NOW, "ssl.keystore.type=BKS: write PEM or PKCS12"),
        (at("encrypted", key_password="w"), NOW, "ssl.key.password is wrong"),
        (at("encrypted"), NOW, "encrypted: set ssl.key.password"),
        (at("certificates"), NOW, "no private key is there"),
        (at("text"), NOW, "no certificate can be read there"),
        (at("mixed"), NOW, "does not fit the first certificate, CN=node"),
        (at("good"), NOW + 2 * DAY, "the certificate of CN=node expired on"),
        (at("good"), NOW - 2 * DAY, "is not valid before"),
        (
            StoreSettings(name="ssl.keystore", certificates=NODE.certificate_pem),
            NOW,
            "ssl.keystore.certificate.chain and ssl.keystore.key",
        ),
        (at("good", certificates=NODE.pem, key=NODE.pem), NOW, "leave one of them out"),
    ]


def test_stores_that_cannot_be_used_are_refused_by_name(tmp_path: Path) -> None:
    for store, now, words in stores_refused(tmp_path):
        with pytest.raises(StoreError) as caught:
            server_context(TlsSettings(key_store=store), now)
        assert words in str(caught.value)
        assert str(caught.value).startswith("ssl.keystore")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"client_auth": "maybe"}, "ssl.client.auth=maybe: write none, requested, required"),
        ({"client_auth": "required"}, "set ssl.truststore.location"),
        ({"enabled_protocols": ("SSLv3",)}, "ssl.enabled.protocols: SSLv3: write TLSv1.2"),
        ({"protocol": "TLSv1.2", "enabled_protocols": ("TLSv1.3",)}, "ssl.protocol=TLSv1.2: it"),
        ({"cipher_suites": ("TLS_AES_128_GCM_SHA256",)}, "can only be had together"),
        ({"cipher_suites": ("NONE_SUCH",)}, "ssl.cipher.suites=NONE_SUCH"),
        (
            {"cipher_suites": ("NONE_SUCH", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")},
            "not known to OpenSSL: NONE_SUCH",
        ),
        ({"key_store": StoreSettings(name="ssl.keystore")}, "ssl.keystore.location: a listener"),
    ],
)
def test_settings_that_cannot_be_had_are_refused_by_name(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(StoreError) as caught:
        server_context(TlsSettings(**{"key_store": key_store(NODE)} | settings), NOW)
    assert words in str(caught.value)
