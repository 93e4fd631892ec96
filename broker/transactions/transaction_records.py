"""The records of `__transaction_state`: the last one of a transactional id says where it stands.

This module knows bytes only. A key is its version, 0, and the transactional id. A value begins with
its version: 0 is plain, and 1 flexible with three tagged fields, which is written with
transaction.version 1 and 2. A record without value is a tombstone.

Source: Kafka's TransactionLogKey, TransactionLogValue and TransactionLog.
"""

from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error

from broker.coordination.fields import Fields, sized_string
from broker.transactions.transaction import (
    NO_ID,
    Transaction,
    TransactionState,
    places_by_topic,
)
from broker.verifying import Place
from wire.batch import Record
from wire.varint import Malformed, uvarint

__all__ = ["TransactionChange", "decode_change", "encode_change"]

_KEY_VERSION = 0
_NEWEST = 1
_FLEXIBLE_SINCE = 1
_PREVIOUS_ID_TAG, _NEXT_ID_TAG, _CLIENT_VERSION_TAG = 0, 1, 2

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_HEAD = Struct(">hqhib")  # version, producer id and epoch, timeout, state
_TIMES = Struct(">qq")  # of the last update, and of the start

_STATES = {state.id: state for state in TransactionState}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionChange:
    transactional_id: str
    transaction: Transaction | None  # None: it is forgotten
    is_flexible: bool = True  # with transaction.version 1 and 2


# --- writing --------------------------------------------------------------------------------


def encode_change(change: TransactionChange) -> Record:
    key = _INT16.pack(_KEY_VERSION) + sized_string(change.transactional_id)
    transaction = change.transaction
    if transaction is None:
        return Record(key=key, value=None)
    version = _NEWEST if change.is_flexible else 0
    value = (
        _HEAD.pack(
            version,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.timeout_ms,
            transaction.state.id,
        )
        + (_flexible_topics if change.is_flexible else _plain_topics)(transaction)
        + _TIMES.pack(transaction.update_ms, transaction.start_ms)
        + (_tags(transaction) if change.is_flexible else b"")
    )
    return Record(key=key, value=value)


def _by_topic(transaction: Transaction) -> dict[str, list[int]] | None:
    """None where there can be no partitions: Kafka writes null then."""
    if transaction.state is TransactionState.EMPTY:
        return None
    return places_by_topic(transaction.places)


def _plain_topics(transaction: Transaction) -> bytes:
    topics = _by_topic(transaction)
    if topics is None:
        return _INT32.pack(-1)
    parts = [_INT32.pack(len(topics))]
    for topic, indexes in topics.items():
        parts += (sized_string(topic), _INT32.pack(len(indexes)), *map(_INT32.pack, indexes))
    return b"".join(parts)


def _flexible_topics(transaction: Transaction) -> bytes:
    topics = _by_topic(transaction)
    if topics is None:
        return uvarint(0)
    parts = [uvarint(len(topics) + 1)]
    for topic, indexes in topics.items():
        text = topic.encode()
        parts += (uvarint(len(text) + 1), text, uvarint(len(indexes) + 1))
        parts += (*map(_INT32.pack, indexes), uvarint(0))
    return b"".join(parts)


def _tags(transaction: Transaction) -> bytes:
    """Those that are not what they are without being written."""
    tags = []
    if transaction.previous_producer_id != NO_ID:
        tags.append((_PREVIOUS_ID_TAG, _INT64.pack(transaction.previous_producer_id)))
    if transaction.next_producer_id != NO_ID:
        tags.append((_NEXT_ID_TAG, _INT64.pack(transaction.next_producer_id)))
    if transaction.client_version:
        tags.append((_CLIENT_VERSION_TAG, _INT16.pack(transaction.client_version)))
    fields = (uvarint(tag) + uvarint(len(content)) + content for tag, content in tags)
    return uvarint(len(tags)) + b"".join(fields)


# --- reading --------------------------------------------------------------------------------


def decode_change(record: Record) -> TransactionChange | None:
    """What a record changes; None for a key that we do not know. Raises `Malformed`."""
    if record.key is None:
        raise Malformed(f"a record without a key, at offset {record.offset}")
    try:
        key = Fields(record.key)
        if key.int16() != _KEY_VERSION:
            return None
        id_ = key.string()
        transaction = None if record.value is None else _read(id_, record.value)
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise Malformed(f"the record at offset {record.offset}: {error}") from error
    return TransactionChange(transactional_id=id_, transaction=transaction)


def _read(id_: str, value: bytes) -> Transaction:
    fields = Fields(value)
    fields.version(newest=_NEWEST, flexible_since=_FLEXIBLE_SINCE)
    producer_id, epoch = fields.int64(), fields.int16()
    timeout_ms, state = fields.int32(), fields.int8()
    if state not in _STATES:
        raise Malformed(f"a transaction in state {state}")
    places = frozenset(_read_places(fields))
    update_ms, start_ms = fields.int64(), fields.int64()
    tags = fields.tags()
    return Transaction(
        id=id_,
        producer_id=producer_id,
        previous_producer_id=_tagged(tags, _PREVIOUS_ID_TAG, _INT64, NO_ID),
        next_producer_id=_tagged(tags, _NEXT_ID_TAG, _INT64, NO_ID),
        producer_epoch=epoch,
        timeout_ms=timeout_ms,
        state=_STATES[state],
        places=places,
        start_ms=start_ms,
        update_ms=update_ms,
        client_version=_tagged(tags, _CLIENT_VERSION_TAG, _INT16, 0),
    )


def _read_places(fields: Fields) -> list[Place]:
    places = []
    for _ in range(fields.count()):
        topic = fields.string()
        places += [(topic, fields.int32()) for _ in range(fields.count())]
        fields.tags()
    return places


def _tagged(tags: dict[int, bytes], tag: int, layout: Struct, absent: int) -> int:
    if tag not in tags:
        return absent
    (value,) = layout.unpack(tags[tag])
    assert isinstance(value, int), value
    return value
