"""The records of `__transaction_state`: Kafka's own bytes are read, and ours are the same.

The bytes are of Kafka 4.3.1's TransactionLog.keyToBytes and valueToBytes.
"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.transactions.transaction import Transaction, TransactionState
from broker.transactions.transaction_records import TransactionChange, decode_change, encode_change
from wire.batch import Record
from wire.varint import Malformed

KEY = bytes.fromhex("000000057061792d31")
ID = "pay-1"
EMPTY = Transaction(
    id=ID,
    producer_id=7000,
    previous_producer_id=7000,
    producer_epoch=0,
    timeout_ms=60_000,
    update_ms=1_234_567,
)
ONGOING = Transaction(
    id=ID,
    producer_id=7000,
    previous_producer_id=7000,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    places=frozenset({("orders", 0)}),
    start_ms=1_234_000,
    update_ms=1_234_567,
    client_version=2,
)
PREPARED = Transaction(
    id=ID,
    producer_id=7000,
    previous_producer_id=7000,
    next_producer_id=7001,
    producer_epoch=32767,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_ABORT,
    places=frozenset({("orders", 0)}),
    start_ms=1_234_000,
    update_ms=1_234_567,
    client_version=2,
)
COMPLETE = Transaction(
    id=ID,
    producer_id=7001,
    previous_producer_id=7000,
    producer_epoch=0,
    timeout_ms=60_000,
    state=TransactionState.COMPLETE_COMMIT,
    start_ms=1_234_000,
    update_ms=1_234_568,
    client_version=2,
)
FLEXIBLE = {
    "00010000000000001b5800000000ea600000000000000012d687"
    "ffffffffffffffff0100080000000000001b58": EMPTY,
    "00010000000000001b5800030000ea600102076f7264657273020000000000"
    "000000000012d687000000000012d4500200080000000000001b5802020002": ONGOING,
    "00010000000000001b587fff0000ea600302076f7264657273020000000000"
    "000000000012d687000000000012d450"
    "0300080000000000001b5801080000000000001b5902020002": PREPARED,
    "00010000000000001b5900000000ea600401000000000012d688"
    "000000000012d4500200080000000000001b5802020002": COMPLETE,
}
PLAIN = {
    "00000000000000001b5800000000ea6000ffffffff000000000012d687ffffffffffffffff": EMPTY,
    "00000000000000001b5800030000ea600100000001"
    "00066f72646572730000000100000000000000000012d687000000000012d450": ONGOING,
    "00000000000000001b5900000000ea600400000000000000000012d688000000000012d450": COMPLETE,
}


@pytest.mark.parametrize("content", FLEXIBLE)
def test_flexible_values_are_those_of_kafka(content: str) -> None:
    change = TransactionChange(transactional_id=ID, transaction=FLEXIBLE[content])
    record = Record(key=KEY, value=bytes.fromhex(content))
    assert encode_change(change) == record
    assert decode_change(record) == change


@pytest.mark.parametrize("content", PLAIN)
def test_plain_values_have_no_tagged_fields(content: str) -> None:
    known = PLAIN[content]
    change = TransactionChange(transactional_id=ID, transaction=known, is_flexible=False)
    record = Record(key=KEY, value=bytes.fromhex(content))
    assert encode_change(change) == record
    decoded = decode_change(record)
    assert decoded is not None
    assert decoded.transaction is not None
    assert decoded.transaction.places == known.places
    assert decoded.transaction.client_version == 0


def test_a_record_without_value_is_a_tombstone() -> None:
    change = TransactionChange(transactional_id=ID, transaction=None)
    assert encode_change(change) == Record(key=KEY, value=None)
    assert decode_change(Record(key=KEY, value=None)) == change


def test_keys_of_other_versions_are_passed_over() -> None:
    assert decode_change(Record(key=b"\0\1\0\1g", value=b"")) is None


@pytest.mark.parametrize("content", [*FLEXIBLE, *PLAIN])
def test_a_value_that_is_cut_short_is_malformed(content: str) -> None:
    value = bytes.fromhex(content)
    for end in range(len(value)):
        with pytest.raises(Malformed):
            decode_change(Record(key=KEY, value=value[:end]))


def test_a_record_without_a_key_is_malformed() -> None:
    with pytest.raises(Malformed):
        decode_change(Record(key=None, value=b""))


def test_a_state_that_nobody_knows_is_malformed() -> None:
    value = encode_change(TransactionChange(transactional_id=ID, transaction=EMPTY)).value
    assert value is not None
    at = 16  # behind version, producer id and epoch, and time-out
    assert value[at] == TransactionState.EMPTY.id
    with pytest.raises(Malformed):
        decode_change(Record(key=KEY, value=value[:at] + b"\7" + value[at + 1 :]))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_change_or_malformed(value: bytes) -> None:
    with suppress(Malformed):
        decode_change(Record(key=KEY, value=value))
