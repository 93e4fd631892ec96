"""Frames out of a stream, however it is cut, and what is no frame."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.framing import FrameError, FrameReader, with_length


def take_all(reader: FrameReader) -> list[bytes]:
    frames = []
    while (frame := reader.next_frame()) is not None:
        frames.append(frame)
    return frames


@given(st.lists(st.binary(max_size=200), max_size=8), st.data())
def test_frames_come_out_whole_however_the_stream_is_cut(
    frames: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(b"".join(with_length([frame])) for frame in frames)
    reader, taken, position = FrameReader(), [], 0
    while position < len(stream):
        end = data.draw(st.integers(position + 1, len(stream)))
        reader.feed(stream[position:end])
        taken += take_all(reader)
        position = end
    assert taken == frames
    assert reader.untaken_bytes == 0


def test_half_a_frame_is_kept_until_the_rest_comes() -> None:
    reader = FrameReader()
    reader.feed(b"\0\0\0\x05hel")
    assert reader.next_frame() is None
    assert reader.untaken_bytes == 7
    reader.feed(b"lo")
    assert reader.next_frame() == b"hello"


def test_frames_larger_than_the_buffer_and_those_after_them_come_out_whole() -> None:
    frames = [bytes([index]) * size for index, size in enumerate((10, 3_000_000, 70_000, 1))]
    reader = FrameReader()
    for frame in frames:
        reader.feed(b"".join(with_length([frame])))
    assert take_all(reader) == frames


def test_memory_follows_what_has_come_not_what_was_announced() -> None:
    reader = FrameReader()
    reader.feed(pack(">i", 100 << 20))
    assert reader.next_frame() is None
    assert len(reader.get_buffer()) < 1 << 17


def test_a_large_buffer_is_given_back_when_it_is_empty() -> None:
    reader = FrameReader()
    reader.feed(b"".join(with_length([bytes(3_000_000)])))
    take_all(reader)
    assert len(reader.get_buffer()) < 1 << 17


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"GET /metrics HTTP/1.1", "looks like an HTTP request"),
        (b"HTTP/1.1 400 Bad", "looks like an HTTP response"),
        (b"\x16\x03\x01\x00\xa5\x01", "looks like a TLS handshake"),
        (b"ruok", "looks like a ZooKeeper command"),
        (pack(">i", -1), "a frame has the length -1"),
        (pack(">i", 1001), "a frame of 1001 bytes, above the limit of 1000"),
    ],
)
def test_what_is_no_frame_is_told_by_its_first_bytes(content: bytes, said: str) -> None:
    reader = FrameReader(frame_bytes_max=1000)
    reader.feed(content)
    with pytest.raises(FrameError, match=said):
        reader.next_frame()


def test_a_frame_of_the_largest_size_passes() -> None:
    reader = FrameReader(frame_bytes_max=1000)
    reader.feed(b"".join(with_length([bytes(500), bytes(500)])))
    assert reader.next_frame() == bytes(1000)
