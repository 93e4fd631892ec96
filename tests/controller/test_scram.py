"""SCRAM credentials: what is stored of a password, and how users are described."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Any

import pytest

from controller.decisions.security_changes import decide_alter_scram_credentials
from controller.metadata.image import MetadataImage
from controller.metadata.security import (
    Mechanism,
    describe_scram_credentials,
    server_key,
    stored_key,
)
from tests.controller.clusters import cluster, step
from wire.errors import ErrorCode
from wire.messages.scram_users import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

BASE = cluster(1)
SHA_256, SHA_512 = Mechanism


def upsert(
    name: str = "bob", mechanism: int = 1, iterations: int = 4096, password: bytes = b"p"
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"s", salted_password=password
    )


def remove(name: str = "bob", mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def decide(image: MetadataImage, *asked: ScramCredentialDeletion | ScramCredentialUpsertion) -> Any:
    request = AlterUserScramCredentialsRequest(
        deletions=tuple(item for item in asked if isinstance(item, ScramCredentialDeletion)),
        upsertions=tuple(item for item in asked if isinstance(item, ScramCredentialUpsertion)),
    )
    return decide_alter_scram_credentials(image, request)


def described(image: MetadataImage, *users: str) -> Any:
    names = tuple(UserName(name=user) for user in users)
    return describe_scram_credentials(image, DescribeUserScramCredentialsRequest(users=names))


def test_keys_verify_the_example_of_rfc_7677() -> None:
    """Section 3: the proof of the client, and the server's signature."""
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
    exchanged = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s={salt},i=4096,c=biws,r={nonce}".encode()
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b64decode(salt), 4096)

    signature = hmac.digest(server_key(SHA_256, salted), exchanged, "sha256")
    assert b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    mask = hmac.digest(stored_key(SHA_256, salted), exchanged, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, mask, strict=True))
    assert hashlib.sha256(client_key).digest() == stored_key(SHA_256, salted)


def test_the_longer_mechanism_has_longer_keys() -> None:
    assert len(stored_key(SHA_512, b"p")) == len(server_key(SHA_512, b"p")) == 64


def test_credentials_are_set_and_deleted() -> None:
    decision = decide(BASE, upsert(), upsert(mechanism=2, iterations=8192))
    assert [result.user for result in decision.response.results] == ["bob"]
    image = step(BASE, *decision.changes)
    (answer,) = described(image).results
    assert [(i.mechanism, i.iterations) for i in answer.credential_infos] == [(1, 4096), (2, 8192)]
    stored = image.scram_credentials["bob", 1]
    assert (stored.salt, stored.stored_key) == (b"s", stored_key(SHA_256, b"p"))
    assert b"p" not in (stored.stored_key, stored.server_key)
    image = step(image, *decide(image, remove(mechanism=1)).changes)
    assert list(image.scram_credentials) == [("bob", 2)]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ([upsert(name="")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert(mechanism=3)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([upsert(iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert(iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert(password=b"")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([remove()], ErrorCode.RESOURCE_NOT_FOUND),
        ([upsert(), upsert()], ErrorCode.DUPLICATE_RESOURCE),
        ([remove("ann"), upsert("ann")], ErrorCode.DUPLICATE_RESOURCE),
        ([upsert(), upsert(mechanism=2, iterations=1)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert(mechanism=3), upsert(iterations=1)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_wrong_change_refuses_all_of_its_user(asked: Any, code: ErrorCode) -> None:
    image = step(BASE, *decide(BASE, upsert("ann")).changes)
    decision = decide(image, *asked, upsert("fine"))
    by_user = {result.user: result.error_code for result in decision.response.results}
    assert by_user == {asked[0].name: code, "fine": ErrorCode.NONE}
    assert [change.name for change in decision.changes] == ["fine"]


def test_older_levels_have_no_credentials() -> None:
    decision = decide(cluster(1, version=10), upsert())
    assert decision.response.results[0].error_code is ErrorCode.UNSUPPORTED_VERSION
    assert decision.changes == ()


def test_users_are_described_once() -> None:
    image = step(BASE, *decide(BASE, upsert("ann"), upsert("bob")).changes)
    assert [result.user for result in described(image).results] == ["ann", "bob"]
    answer = described(image, "bob", "ann", "bob", "eve")
    assert [(result.user, result.error_code) for result in answer.results] == [
        ("bob", ErrorCode.DUPLICATE_RESOURCE),
        ("ann", ErrorCode.NONE),
        ("eve", ErrorCode.RESOURCE_NOT_FOUND),
    ]
