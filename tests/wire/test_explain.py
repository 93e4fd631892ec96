"""Every byte of a batch is told, once, whatever lies in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.batch import HEADER_BYTES, BatchHeader, Record, build_batch, write_header
from wire.explain import Range, explain_batch, hex_lines
from wire.metadata_records import NoOpRecord, encode_record

VALUE = encode_record(NoOpRecord())


def explained(batch: bytes) -> list[Range]:
    found = list(explain_batch(batch))
    assert found[0].start == 0
    assert [each.end for each in found[:-1]] == [each.start for each in found[1:]]
    assert found[-1].end == len(batch)
    return found


def values(batch: bytes) -> dict[str, object]:
    return {each.name: each.value for each in explained(batch)}


def test_keys_and_headers_are_told() -> None:
    headers = (("who", b"me"), ("why", None))
    told = values(build_batch([Record(key=b"k", value=VALUE, headers=headers)] * 2, timestamp_ms=5))
    assert told["record 1 key"] == b"k".hex()
    assert told["record 1 header 0 key"] == b"who".hex()
    assert told["record 1 header 0 value"] == b"me".hex()
    assert told["record 1 header 1 value length"] == -1
    assert "unknown" not in told


def sealed(records: bytes, count: int) -> bytes:
    batch = bytearray(HEADER_BYTES) + records
    write_header(batch, BatchHeader(record_count=count, last_offset_delta=max(count - 1, 0)))
    return bytes(batch)


def test_what_lies_behind_the_last_record_is_told() -> None:
    record = build_batch([Record(value=VALUE)], timestamp_ms=5)[HEADER_BYTES:]
    found = explained(sealed(record + b"junk", 1))[-1]
    assert (found.end - found.start, found.value) == (4, "bytes behind the last record")


@pytest.mark.parametrize("is_control", [False, True])
@given(records=st.binary(max_size=60), count=st.integers(0, 3))
def test_nonsense_is_told_as_far_as_it_goes(is_control: bool, records: bytes, count: int) -> None:
    batch = bytearray(sealed(records, count))
    batch[22] |= 0x20 * is_control
    explained(bytes(batch))
    assert len(list(hex_lines(bytes(batch), 0))) >= len(batch) // 8


def test_an_unknown_compression_is_told() -> None:
    batch = bytearray(build_batch([Record(value=VALUE)], timestamp_ms=5))
    batch[22] |= 5
    assert "5 is not a valid Compression" in str(values(bytes(batch))["unknown"])
