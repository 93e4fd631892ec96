"""Metadata records of a later release than ours: kept as their bytes, with what is known of them.

Nobody may decide anything on a log that has such records (`MetadataImage.beyond_us`), but a node
may follow it, and loses nothing.

Source: KIP-482 (tagged fields); what Kafka's nodes stop at.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from wire.metadata_records import MetadataRecord, decode_record, read_frame
from wire.reading import UnknownTag
from wire.record_schema import UnknownRecord, struct_decoder

__all__ = ["ForeignRecord", "kept_record"]

_FRAME_BYTES = 3  # of every record that is known


class ForeignRecord(MetadataRecord):
    """A framed value, and what is known of it.

    Nothing is known of another type or version. Of a tagged field that is new, `known` has all but
    that.
    """

    value: bytes
    known: MetadataRecord | None
    reason: str
    kind: type | None  # of record, if that is known


def kept_record(value: bytes) -> MetadataRecord:
    """As `decode_record`, but a ForeignRecord for all that a later release may have written."""
    try:
        found: MetadataRecord = _decoder(value[:_FRAME_BYTES])(value, _FRAME_BYTES)
    except UnknownTag as error:
        reason = f"a tagged field of {error} that is not known"
        known = decode_record(value)
        return ForeignRecord(value=value, known=known, reason=reason, kind=type(known))
    except UnknownRecord as error:
        return ForeignRecord(value=value, known=None, reason=str(error), kind=error.kind)
    return found


@lru_cache(maxsize=256)
def _decoder(frame: bytes) -> Callable[[bytes, int], Any]:
    """Every record that is known has a frame of three bytes; others are told from the value."""
    with suppress(ValueError):
        record_type, version, end = read_frame(frame)
        if end == len(frame):
            return struct_decoder(record_type, version, skips_unknown_tags=False)
    return lambda value, _: decode_record(value)
