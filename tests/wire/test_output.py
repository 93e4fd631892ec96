"""What is handed to a transport, and when."""

from hypothesis import given, settings
from hypothesis import strategies as st

from wire.tcp_output import SLICE_BYTES, Output


class Transport:
    """Is full after so many bytes, until it is emptied."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.room = room
        self.kept = 0
        self.written: list[bytes] = []
        self.output = Output(self)

    def write(self, data: memoryview | bytes) -> None:
        self.written.append(bytes(data))
        self.kept += len(data)
        if self.kept >= self.room:
            self.output.pause()

    def take(self) -> None:
        self.kept = 0
        self.output.resume()


def test_small_answers_go_together() -> None:
    transport = Transport()
    transport.output.write([b"length", b"head", b"records"])
    assert transport.written == [b"lengthheadrecords"]


def test_large_answer_waits_for_room_slice_by_slice() -> None:
    transport = Transport(room=SLICE_BYTES)
    transport.output.write([b"head", bytes(3 * SLICE_BYTES)])
    assert list(map(len, transport.written)) == [4, SLICE_BYTES]
    assert transport.output.is_full
    transport.take()
    assert list(map(len, transport.written)) == [4, SLICE_BYTES, SLICE_BYTES]


def test_small_answer_stays_behind_a_large_one() -> None:
    transport = Transport(room=SLICE_BYTES)
    transport.output.write([bytes(2 * SLICE_BYTES)])
    transport.output.write([b"behind"])
    transport.take()
    assert transport.written[-1] != b"behind"
    transport.take()
    assert transport.written[-1] == b"behind"


@settings(max_examples=30, deadline=None)
@given(
    answers=st.lists(st.lists(st.integers(0, 3 * SLICE_BYTES), max_size=3), max_size=5),
    room=st.integers(1, 4 * SLICE_BYTES),
    takes_between=st.booleans(),
)
def test_bytes_leave_in_their_order(
    answers: list[list[int]], room: int, takes_between: bool
) -> None:
    transport = Transport(room)
    expected = bytearray()
    for number, sizes in enumerate(answers):
        pieces = [bytes([number * 3 + place]) * size for place, size in enumerate(sizes)]
        expected += b"".join(pieces)
        transport.output.write(pieces)
        if takes_between:
            transport.take()
    while transport.output.is_full:
        transport.take()
    assert b"".join(transport.written) == expected
