"""What a leader has promised, one command on its way at a time."""

from quorum.raftos.commands import ANYWHERE, PIECE_BYTES_MAX, Command
from quorum.raftos.proposals import Proposals


def leading() -> Proposals:
    proposals = Proposals(node_id=101, life=5, term=3, number=0)
    proposals.end_offset = 10
    return proposals


def taken(proposals: Proposals) -> Command:
    command = proposals.next()
    assert command is not None
    return command


def test_nothing_is_proposed_while_a_command_is_under_way() -> None:
    proposals = leading()
    assert proposals.promise(b"first", 2) == 12
    first = taken(proposals)
    assert (first.base_offset, first.records) == (10, b"first")
    assert proposals.promise(b"second", 1) == 13
    assert proposals.next() is None
    assert proposals.committed(first)
    assert taken(proposals).base_offset == 12


def test_what_has_waited_travels_together() -> None:
    proposals = leading()
    proposals.promise(b"a", 1)
    first = taken(proposals)
    for batch in (b"b", b"c", b"d"):
        proposals.promise(batch, 1)
    proposals.committed(first)
    second = taken(proposals)
    assert (second.base_offset, second.records) == (11, b"bcd")
    assert proposals.committed(second)
    assert proposals.next() is None


def test_batches_that_no_datagram_holds_together_travel_apart() -> None:
    proposals = leading()
    half = bytes(PIECE_BYTES_MAX // 2 + 1)
    proposals.promise(half, 1)
    proposals.promise(half, 1)
    first = taken(proposals)
    assert (first.records, first.pieces) == (half, 1)
    proposals.committed(first)
    assert taken(proposals).records == half


def test_large_batch_travels_in_pieces_of_one_proposal() -> None:
    proposals = leading()
    proposals.promise(bytes(2 * PIECE_BYTES_MAX + 1), 500)
    pieces = []
    while (piece := proposals.next()) is not None:
        pieces.append(piece)
        assert proposals.committed(piece)
    assert [(each.number, each.piece, each.pieces) for each in pieces] == [
        (1, 0, 3),
        (1, 1, 3),
        (1, 2, 3),
    ]


def test_commit_of_another_nodes_command_is_not_ours() -> None:
    proposals = leading()
    proposals.promise(b"a", 1)
    own = taken(proposals)
    other = Command(proposer=102, life=5, number=own.number, base_offset=10, records=b"a")
    assert not proposals.committed(other)
    assert proposals.next() is None


def test_question_is_answered_by_a_command_that_was_proposed_after_it() -> None:
    proposals = leading()
    proposals.promise(b"before", 1)
    before = taken(proposals)
    assert proposals.ask() == 1
    proposals.committed(before)
    assert proposals.confirmed == 0
    alone = taken(proposals)
    assert (alone.records, alone.base_offset) == (b"", ANYWHERE)
    proposals.committed(alone)
    assert proposals.confirmed == 1
    assert proposals.next() is None


def test_question_rides_with_records() -> None:
    proposals = leading()
    proposals.ask()
    proposals.promise(b"after", 1)
    proposals.committed(taken(proposals))
    assert proposals.confirmed == 1
    assert proposals.next() is None
