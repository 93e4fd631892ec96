"""Login modules as Kafka's users write them."""

import pytest

from quorumlab.security.jaas import parse_jaas


def test_users_and_options_of_a_module() -> None:
    entry = parse_jaas(
        "org.apache.kafka.common.security.plain.PlainLoginModule Required // as in the manual\n"
        """  username='node' password="a \\"quoted\\"; = one" /* and: */ user_alice=hers ;"""
    )
    assert entry.module == "PlainLoginModule"
    assert entry.options["password"] == 'a "quoted"; = one'
    assert entry.users == {"alice": "hers"}
    assert "hers" not in repr(entry)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PlainLoginModule required",
        'PlainLoginModule required username="a"',
        "PlainLoginModule perhaps a=b;",
        'PlainLoginModule required username="secret;',
        "PlainLoginModule required username;",
        "PlainLoginModule required username=;",
        "PlainLoginModule required a secret b;",
        "PlainLoginModule required; ScramLoginModule required;",
        "= = =;",
    ],
)
def test_what_is_no_entry_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_jaas(text)
    assert "secret" not in str(refused.value)
