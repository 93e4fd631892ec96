"""A history survives whatever cuts it, and says where it is broken."""

from io import BytesIO
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen_like.histories.frames import framed
from jepsen_like.histories.history import (
    FORMAT,
    VERSION,
    Header,
    History,
    Kind,
    MalformedHistory,
    Op,
    encode_header,
    encode_op,
    header_as_value,
    read_history,
    stream_history,
)

HEADER = Header(workload="log", seed=7, options={"brokers": [1, 2, 3], "idempotent": True})

values = st.sampled_from(
    [None, True, 2**63 - 1, -(2**63), "", "é", b"bytes", [["send", "a-0", [0, 1]]], {"k": [None]}]
)
ops = st.builds(
    Op,
    index=st.integers(0, 2**40),
    time_ns=st.integers(0, 2**60),
    kind=st.sampled_from(Kind),
    process=st.integers(0, 2**31) | st.text(min_size=1, max_size=8),
    f=st.sampled_from(["send", "poll", "kill"]),
    value=values,
    error=st.none() | st.text(max_size=8),
    extra=st.sampled_from([{}, {"caught_up": True}, {"ends": {"a-0": 3}}]),
)


def encoded(written: list[Op]) -> tuple[bytes, list[int]]:
    """The file, and where its frames end."""
    frames = [encode_header(HEADER), *map(encode_op, written)]
    ends, end = [], 0
    for frame in frames:
        end += len(frame)
        ends.append(end)
    return b"".join(frames), ends


@given(st.lists(ops, max_size=5))
def test_history_reads_back_as_it_was_written(written: list[Op]) -> None:
    content, _ = encoded(written)
    assert read_history(content) == History(header=HEADER, ops=written)


@given(st.lists(ops, max_size=4), st.data())
def test_any_cut_leaves_the_operations_before_it(written: list[Op], data: st.DataObject) -> None:
    content, ends = encoded(written)
    cut = data.draw(st.integers(0, len(content)))
    if cut < ends[0]:
        with pytest.raises(MalformedHistory, match="does not begin"):
            read_history(content[:cut])
        return
    history = read_history(content[:cut])
    assert history.header == HEADER
    assert history.ops == written[: sum(end <= cut for end in ends) - 1]
    assert history.is_cut == (cut not in ends)


@given(st.lists(ops, max_size=4))
def test_stream_reads_the_same_and_leaves_out_a_torn_end(written: list[Op]) -> None:
    content, _ = encoded(written)
    header, streamed = stream_history(BytesIO(content + b"\xcf\x00"))
    assert header == HEADER
    assert list(streamed) == written


@given(st.binary(max_size=200))
def test_other_bytes_are_no_history(content: bytes) -> None:
    with pytest.raises(MalformedHistory):
        read_history(content)


@given(st.lists(ops, max_size=3), st.data())
def test_flipped_byte_is_said_to_be_broken(written: list[Op], data: st.DataObject) -> None:
    content, _ = encoded(written)
    at = data.draw(st.integers(0, len(content) - 1))
    flipped = bytes(
        [*content[:at], content[at] ^ data.draw(st.integers(1, 255)), *content[at + 1 :]]
    )
    for read in (read_history, lambda content: list(stream_history(BytesIO(content))[1])):
        with pytest.raises(MalformedHistory):
            read(flipped)


def test_every_flipped_bit_of_a_history_is_noticed() -> None:
    """None passes for a torn end, either: that would hide all that follows."""
    ops = [
        Op(index=at, time_ns=at, kind=kind, process=0, f="write", value=["x", 5])
        for at, kind in enumerate((Kind.INVOKE, Kind.OK))
    ]
    content, _ = encoded(ops)
    for at in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[at] ^= 1 << bit
            with pytest.raises(MalformedHistory):
                read_history(bytes(flipped))


def test_frame_longer_than_a_block_is_read_from_a_stream() -> None:
    ops = [
        Op(index=at, time_ns=at, kind=Kind.INVOKE, process=0, f="write", value="v" * (3 << 20))
        for at in range(2)
    ]
    content, _ = encoded(ops)
    assert list(stream_history(BytesIO(content))[1]) == ops
    assert list(stream_history(BytesIO(content[:-1]))[1]) == ops[:1]
    assert read_history(content[:-1]).is_cut


def test_version_without_frames_is_read() -> None:
    header = {**header_as_value(HEADER), "version": 1}
    op = [0, 0, "invoke", 0, "send", None, None, {}]
    content = msgpack.packb(header) + msgpack.packb(op)
    for torn in (b"", b"\x98\x00"):
        history = read_history(content + torn)
        assert (history.header, len(history.ops), history.is_cut) == (HEADER, 1, bool(torn))
    assert len(list(stream_history(BytesIO(content))[1])) == 1


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        ([0, 0, "maybe", 0, "send", None, None, {}], "frame 1"),
        ([0, 0, "ok", 0, "send", None], "frame 1"),
        ([0, 0, "ok", None, "send", None, None, {}], "frame 1"),
        ([0, "now", "ok", 0, "send", None, None, {}], "frame 1"),
        ({"index": 0}, "frame 1"),
    ],
)
def test_frame_that_is_no_operation_is_named(frame: Any, named: str) -> None:
    with pytest.raises(MalformedHistory, match=named):
        read_history(encode_header(HEADER) + framed(msgpack.packb(frame)))


def test_later_version_is_refused_in_words() -> None:
    content = msgpack.packb({"format": FORMAT, "version": VERSION + 1})
    with pytest.raises(MalformedHistory, match=f"this program reads {VERSION}"):
        read_history(content)


def test_header_that_lacks_its_workload_is_refused() -> None:
    content = framed(msgpack.packb({"format": FORMAT, "version": VERSION, "seed": 1}))
    with pytest.raises(MalformedHistory, match="lacks"):
        read_history(content)
