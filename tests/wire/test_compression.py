"""The codecs: what a real Kafka compressed, round trips, and strange bytes."""

import gzip
from pathlib import Path

import cramjam
import kafka.codec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire import compression
from wire.batch import headers, records_of
from wire.compression import Compression, compress, decompress
from wire.varint import Malformed

LOG = Path(__file__).parent.parent / "golden/data/node-1/t-0/00000000000000000000.log"
CODECS = [codec for codec in Compression if codec is not Compression.NONE]
LEVELS = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}


def closed(plain: bytes, codec: Compression) -> bytes:
    return bytes(compress(memoryview(plain), codec, LEVELS.get(codec, 0)))


@pytest.mark.parametrize("codec", CODECS)
def test_what_kafkas_producer_compressed_is_read(codec: Compression) -> None:
    log = LOG.read_bytes()
    (batch,) = (
        log[position : position + header.size_bytes]
        for position, header in headers(log)
        if header.compression is codec
    )
    values = [record.value for record in records_of(batch)]
    assert values == [f"{codec.name.lower()} {'z' * 60} {i}".encode() for i in range(4)]


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=10, deadline=None)
@given(unit=st.binary(min_size=1, max_size=8), count=st.integers(0, 10_000))
def test_what_is_closed_opens_again(codec: Compression, unit: bytes, count: int) -> None:
    plain = unit * count
    assert bytes(decompress(closed(plain, codec), codec)) == plain


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_python_reads_ours_and_we_read_what_it_writes(codec: Compression) -> None:
    plain = b"a record of many " * 10_000
    encode = getattr(kafka.codec, f"{codec.name.lower()}_encode")
    decode = getattr(kafka.codec, f"{codec.name.lower()}_decode")
    assert decode(closed(plain, codec)) == plain
    assert decompress(encode(plain), codec) == plain


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_of_another_kind_are_malformed(codec: Compression) -> None:
    packed = closed(b"a record " * 10_000, codec)
    for strange in (b"", b"x", b"not compressed", packed[:-4], packed[:20], b"\xff" * 40):
        with pytest.raises(Malformed, match=codec.name.lower()):
            decompress(strange, codec)


@pytest.mark.parametrize("codec", CODECS)
def test_few_bytes_do_not_become_too_many(
    codec: Compression, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "PLAIN_BYTES_MAX", 1 << 16)
    assert len(decompress(closed(bytes(1 << 16), codec), codec)) == 1 << 16
    with pytest.raises(Malformed, match=codec.name.lower()):
        decompress(closed(bytes((1 << 16) + 1), codec), codec)


def test_snappy_without_a_stream_is_read() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"value " * 20))
    assert decompress(raw, Compression.SNAPPY) == b"value " * 20


def test_lz4_blocks_are_independent() -> None:
    frame = closed(b"a" * 200_000, Compression.LZ4)
    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] & 0x20


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_higher_level_compresses_better(codec: Compression) -> None:
    plain = b"".join(b"%d times %d, " % (i * i % 977, i) for i in range(3000))
    low = {Compression.LZ4: 9}.get(codec, 1)  # Kafka's default of lz4 is the fast one
    high = {Compression.ZSTD: 15, Compression.LZ4: 12}.get(codec, 9)
    assert len(compress(plain, codec, high)) < len(compress(plain, codec, low))
    assert decompress(compress(plain, codec, high), codec) == plain


def test_gzip_is_pythons() -> None:
    assert gzip.decompress(closed(b"records", Compression.GZIP)) == b"records"


def test_a_second_gzip_member_is_not_left_out() -> None:
    """It has records too: without them the batch would be acknowledged, and kept in part."""
    member = closed(b"a record", Compression.GZIP)
    with pytest.raises(Malformed, match="behind the end"):
        decompress(member * 2, Compression.GZIP)
