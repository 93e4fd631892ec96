"""SCRAM over sockets: a login that was recorded, a channel that is not ours, fewer iterations."""

import asyncio
import hashlib
import logging
from base64 import b64encode
from itertools import count
from typing import Any

import pytest

from tests.wire.test_tcp import HOST, run
from tests.wire.test_tcp_authentication import ANSWER, Caller, Listener
from wire.errors import ErrorCode
from wire.messages.metadata import DescribeClusterRequest
from wire.security.authentication import SaslListener, SaslMechanism
from wire.security.client_authentication import SaslLogin
from wire.security.exchanges import Challenge
from wire.security.protocols import ClientSecurity
from wire.security.scram import SCRAM_SHA_256, ScramClient, ScramCredential, ScramServer
from wire.security.scram_decoys import decoy
from wire.security.security_protocol import SecurityProtocol
from wire.tcp_client import ConnectionPool, SendFailure

MECHANISM = SCRAM_SHA_256.mechanism
SALTED = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt" * 6, 4096)
CLIENT_KEY = SCRAM_SHA_256.hmac(SALTED, b"Client Key")
USERS = {
    "alice": ScramCredential(
        salt=b"salt" * 6,
        iterations=4096,
        stored_key=SCRAM_SHA_256.of(CLIENT_KEY),
        server_key=SCRAM_SHA_256.hmac(SALTED, b"Server Key"),
    )
}


class FewIterations(ScramServer):
    """A server in the middle, which wants a proof that it can guess the password from."""

    def receive(self, token: bytes, now_ms: int) -> Any:
        step = super().receive(token, now_ms)
        assert isinstance(step, Challenge), "it was shown a proof"
        return Challenge(step.token.replace(b"i=4096", b"i=1"))


def listening(server: type[ScramServer] = ScramServer) -> Listener:
    nonces = count()

    def begin() -> ScramServer:
        return server(
            SCRAM_SHA_256,
            USERS.get,
            nonce=f"SERVER{next(nonces)}",
            decoy_of=lambda user: decoy(SCRAM_SHA_256, user, b"", ()),
        )

    sasl = SaslListener(mechanisms={MECHANISM: SaslMechanism(begin=begin)}, failure_delay_seconds=0)
    return Listener(sasl=sasl)


def begun() -> ScramClient:
    return ScramClient(SCRAM_SHA_256, "alice", "secret", nonce="CLIENT")


async def show(caller: Caller, first: bytes) -> bytes:
    """The server's challenge."""
    assert (await caller.choose(mechanism=MECHANISM)).error_code is ErrorCode.NONE
    answer = await caller.show(first)
    assert answer.error_code is ErrorCode.NONE
    challenge: bytes = answer.auth_bytes
    return challenge


async def is_let_in(caller: Caller, proof: bytes) -> bool:
    answer = await caller.show(proof)
    if answer.error_code is ErrorCode.NONE:
        return bool(await caller.asks() == ANSWER)
    assert answer.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert await caller.is_closed()
    return False


def test_a_recorded_login_lets_nobody_in_again() -> None:
    async def test() -> None:
        async with listening() as node:
            alice = begun()
            async with Caller(node.port) as caller:
                step = alice.receive(await show(caller, alice.first()))
                assert isinstance(step, Challenge)
                assert await is_let_in(caller, step.token)
            async with Caller(node.port) as eve:
                challenge = await show(eve, alice.first())
                assert not await is_let_in(eve, step.token)
            async with Caller(node.port) as eve:  # with the nonce of the day, and the old proof
                challenge = await show(eve, alice.first())
                nonce = challenge.partition(b",s=")[0]
                proof = step.token.partition(b",p=")[2]
                assert not await is_let_in(eve, b"c=biws," + nonce + b",p=" + proof)
            assert len(node.asked) == 1

    run(test)


@pytest.mark.parametrize(
    ("header", "repeated", "is_good"),
    [
        ("n,,", "n,,", True),
        ("y,,", "y,,", True),  # it could bind the channel, and thinks that we cannot: we cannot
        ("y,,", "n,,", False),  # somebody in the middle took the offer away
        ("n,,", "p=tls-unique,,of another connection", False),
    ],
)
def test_the_channel_is_the_one_that_the_client_spoke_of(
    header: str, repeated: str, is_good: bool
) -> None:
    async def test() -> None:
        async with listening() as node, Caller(node.port) as caller:
            challenge = await show(caller, f"{header}n=alice,r=CLIENT".encode())
            nonce = challenge.partition(b",s=")[0].decode()
            without = f"c={b64encode(repeated.encode()).decode()},{nonce}"
            signed = f"n=alice,r=CLIENT,{challenge.decode()},{without}".encode()
            signature = SCRAM_SHA_256.hmac(SCRAM_SHA_256.of(CLIENT_KEY), signed)
            proof = bytes(a ^ b for a, b in zip(CLIENT_KEY, signature, strict=True))
            told = f"{without},p={b64encode(proof).decode()}".encode()
            assert await is_let_in(caller, told) is is_good

    run(test)


def test_a_channel_that_is_bound_is_refused_at_once() -> None:
    async def test() -> None:
        async with listening() as node, Caller(node.port) as caller:
            await caller.choose(mechanism=MECHANISM)
            assert not await is_let_in(caller, b"p=tls-unique,,n=alice,r=CLIENT")

    run(test)


def test_our_client_proves_nothing_for_fewer_iterations(caplog: pytest.LogCaptureFixture) -> None:
    login = SaslLogin(mechanism=MECHANISM, begin=begun)
    security = ClientSecurity(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=login)

    async def test() -> None:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        async with (
            listening(FewIterations) as node,
            ConnectionPool(client_id="c", security_of=lambda _: security) as pool,
        ):
            request = DescribeClusterRequest()
            pool.send(HOST, node.port, "x", request, timeout_ms=5000, done=answered.set_result)
            assert await answered is SendFailure.DISCONNECTED
            assert node.asked == []

    with caplog.at_level(logging.WARNING):
        run(test)
    assert "iterations" in caplog.text
    assert "Traceback" not in caplog.text
