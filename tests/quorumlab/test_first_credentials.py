"""`format --add-scram`: what Kafka's users write."""

from base64 import b64encode

import pytest

from quorumlab.security.first_credentials import first_credential
from wire.security.scram import SCRAM_SHA_512


def test_a_password_and_its_salted_form_make_the_same_credential() -> None:
    salt = b64encode(b"salt").decode()
    salted = b64encode(SCRAM_SHA_512.salted("secret", b"salt", 8192)).decode()
    common = f"SCRAM-SHA-512=[name=alice,iterations=8192,salt={salt}"
    record = first_credential(f'{common},password="secret"]')
    assert (record.name, record.mechanism, record.iterations) == ("alice", 2, 8192)
    assert record == first_credential(f"{common},saltedpassword={salted}]")


def test_salts_differ() -> None:
    text = "SCRAM-SHA-256=[name=alice,password=secret]"
    first, second = first_credential(text), first_credential(text)
    assert first.iterations == 4096
    assert first.salt != second.salt
    assert first.stored_key != second.stored_key


@pytest.mark.parametrize(
    "text",
    [
        "PLAIN=[name=alice,password=secret]",
        "SCRAM-SHA-256=name=alice,password=secret",
        "SCRAM-SHA-256=[password=secret]",
        "SCRAM-SHA-256=[name=alice]",
        "SCRAM-SHA-256=[name=alice,saltedpassword=c2VjcmV0]",
        "SCRAM-SHA-256=[name=alice,password=secret,secret]",
        "SCRAM-SHA-256=[name=alice,password=secret,iterations=4095]",
        "SCRAM-SHA-256=[name=alice,password=secret,iterations=16385]",
        "SCRAM-SHA-256=[name=alice,password=secret,salt=?]",
        "SCRAM-SHA-256=[name=alice,password=secret,other=1]",
    ],
)
def test_what_is_no_user_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        first_credential(text)
    assert "secret" not in str(refused.value)
