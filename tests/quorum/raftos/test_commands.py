"""Batches in raftos' datagrams, and out of its log."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from quorum.raftos.commands import ANYWHERE, PIECE_BYTES_MAX, Command, Joining, cut

DATAGRAM_BYTES_MAX = 65_507


def command(number: int = 1, records: bytes = b"", base_offset: int = 7) -> Command:
    return Command(
        proposer=101, life=(1 << 31) - 1, number=number, base_offset=base_offset, records=records
    )


def joined(commands: Sequence[Command]) -> list[Command]:
    joining = Joining()
    return [whole for each in commands if (whole := joining.take(each)) is not None]


def test_what_fits_is_one_piece_and_travels_as_it_is() -> None:
    whole = command(records=bytes(PIECE_BYTES_MAX))
    assert cut(whole) == (whole,)
    assert joined([whole]) == [whole]


def test_question_without_records_is_one_piece() -> None:
    whole = command(base_offset=ANYWHERE)
    assert joined(cut(whole)) == [whole]


@given(size=st.integers(0, 5 * PIECE_BYTES_MAX))
def test_pieces_join_to_what_was_cut(size: int) -> None:
    whole = command(records=(bytes(range(251)) * (size // 251 + 1))[:size])
    assert joined(cut(whole)) == [whole]


def test_every_piece_fits_into_a_datagram_with_what_raftos_adds() -> None:
    raftos = {
        "type": "append_entries",
        "term": 1 << 31,
        "leader_id": "255.255.255.255:65535",
        "commit_index": 1 << 31,
        "request_id": 1 << 31,
        "prev_log_index": 1 << 31,
        "prev_log_term": 1 << 31,
    }
    for piece in cut(command(number=1 << 40, records=bytes(3 * PIECE_BYTES_MAX))):
        sent = raftos | {"entries": [{"term": 1 << 31, "command": piece.as_json()}]}
        assert len(json.dumps(sent).encode()) < DATAGRAM_BYTES_MAX, piece


def test_json_and_back() -> None:
    whole = command(records=b"\x00\n\xff")
    assert Command.of_json(json.loads(json.dumps(whole.as_json()))) == whole


def test_pieces_of_a_leader_that_was_lost_are_dropped_with_the_next_proposal() -> None:
    first, second, _ = cut(command(records=bytes(3 * PIECE_BYTES_MAX)))
    later = command(number=2, records=b"later")
    assert joined([first, second, later]) == [later]


def test_pieces_without_their_beginning_are_dropped() -> None:
    _, second, third = cut(command(records=bytes(3 * PIECE_BYTES_MAX)))
    assert joined([second, third]) == []


def test_pieces_of_two_proposals_do_not_join() -> None:
    ours = cut(command(number=1, records=bytes(2 * PIECE_BYTES_MAX)))
    others = cut(command(number=2, records=bytes(2 * PIECE_BYTES_MAX)))
    assert joined([ours[0], others[1]]) == []
