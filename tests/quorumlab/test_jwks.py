"""Keys from an address: nobody waits for them, and those that came once hold."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from quorumlab.security.jwks import JwksAddress

KEY = ec.generate_private_key(ec.SECP256R1()).public_key()
PUBLIC: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(KEY, as_dict=True)


class Issuer(BaseHTTPRequestHandler):
    content = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Issuer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/jwks"
        server.shutdown()
        thread.join()


def settle() -> None:
    for thread in threading.enumerate():
        if thread.name == "jwks":
            thread.join()


def key_ids(source: JwksAddress) -> list[str | None] | None:
    """Ask, wait for the look that this may have begun, and ask again."""
    settle()
    source(None)
    settle()
    found = source(None)
    return None if found is None else [key.key_id for key in found.keys]


def test_keys_come_and_stay_until_newer_ones_do(url: str) -> None:
    Issuer.content = json.dumps({"keys": [PUBLIC | {"kid": "1"}]}).encode()
    source = JwksAddress(url, refresh_seconds=0)
    assert key_ids(source) == ["1"]
    Issuer.content = b"<html>"
    assert key_ids(source) == ["1"]
    Issuer.content = json.dumps({"keys": [PUBLIC | {"kid": "2"}]}).encode()
    assert key_ids(source) == ["2"]


def test_keys_that_never_came_are_not_known(url: str) -> None:
    Issuer.content = b"{}"
    assert key_ids(JwksAddress(url, refresh_seconds=3600)) is None
