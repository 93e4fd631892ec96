"""A transaction marker: the batch that ends a producer's transaction in one partition.

A control batch of one record. Its key is int16 version, int16 type (0 abort, 1 commit); its value
is int16 version, int32 coordinator epoch. The batch carries the producer's id and epoch, and no
sequence.

Source: KIP-98; Kafka's EndTransactionMarker and ControlRecordType.
"""

from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from wire.batch import BatchHeader, Record, build_batch, records_of
from wire.varint import Buffer, Malformed

__all__ = ["Marker", "build_marker", "may_be_transactional", "read_marker"]

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
_VERSION = 0
_ABORT, _COMMIT = 0, 1
_FLAGS_AT = 22  # in a batch: the lower byte of its attributes
_TRANSACTIONAL = 0b0001_0000


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int


def build_marker(marker: Marker, *, timestamp_ms: int) -> bytes:
    """The batch, but for its offset and leader epoch."""
    record = Record(
        key=_KEY.pack(_VERSION, _COMMIT if marker.is_commit else _ABORT),
        value=_VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    return build_batch(
        (record,),
        timestamp_ms=timestamp_ms,
        is_control=True,
        is_transactional=True,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
    )


def may_be_transactional(batch: Buffer) -> bool:
    """False: it is no batch of a transaction. Cheaper than its header, which the rest will read."""
    return len(batch) > _FLAGS_AT and batch[_FLAGS_AT] & _TRANSACTIONAL != 0


def read_marker(batch: Buffer, header: BatchHeader) -> Marker | None:
    """The marker in a control batch; None if it is something else. Raises `Malformed`."""
    if not (header.is_control and header.is_transactional):
        return None
    record = next(iter(records_of(batch)), None)
    if record is None:
        return None  # compaction has emptied it
    try:
        _, kind = _KEY.unpack_from(record.key or b"")
        if kind not in (_ABORT, _COMMIT):
            return None
        _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except struct_error as error:
        raise Malformed(f"a marker, at offset {header.base_offset}: {error}") from error
    return Marker(header.producer_id, header.producer_epoch, kind == _COMMIT, coordinator_epoch)
