"""Fetch rules of both sides: they must lead any two logs to a common prefix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.core.effects import EpochStart
from quorum.log.epochs import EpochCache
from quorum.log.fetch import (
    Diverging,
    FetchPosition,
    UnknownEpoch,
    Valid,
    check_fetch_position,
    check_leader_epoch,
    truncation_point,
)
from wire.errors import ErrorCode


def cache(*entries: tuple[int, int]) -> EpochCache:
    return EpochCache(EpochStart(epoch, start) for epoch, start in entries)


LEADER = ((1, 0), (3, 10), (5, 20))  # ends at 30


@pytest.mark.parametrize(
    ("fetch_offset", "last_epoch", "expected"),
    [
        (30, 5, Valid()),
        (25, 5, Valid()),
        (31, 5, Diverging(epoch=5, end_offset=30)),
        (15, 3, Valid()),
        (20, 3, Valid()),
        (21, 3, Diverging(epoch=3, end_offset=20)),
        (12, 2, Diverging(epoch=1, end_offset=10)),  # epoch 2 never wrote here
        (12, 4, Diverging(epoch=3, end_offset=20)),
        (40, 6, UnknownEpoch()),
    ],
)
def test_position_of_a_fetcher(fetch_offset: int, last_epoch: int, expected: FetchPosition) -> None:
    found = check_fetch_position(
        cache(*LEADER), end_offset=30, fetch_offset=fetch_offset, last_fetched_epoch=last_epoch
    )
    assert found == expected


@pytest.mark.parametrize(
    ("own", "own_end", "diverging", "expected"),
    [
        (((1, 0), (3, 10)), 25, Diverging(epoch=3, end_offset=20), 20),
        (((1, 0), (3, 10)), 15, Diverging(epoch=3, end_offset=20), 15),
        (((1, 0), (4, 12)), 25, Diverging(epoch=3, end_offset=20), 12),  # 3 never wrote here
        (((4, 0),), 25, Diverging(epoch=3, end_offset=20), 0),
        ((), 25, Diverging(epoch=3, end_offset=20), 20),  # nothing known: the leader's word
    ],
)
def test_where_a_follower_truncates(
    own: tuple[tuple[int, int], ...], own_end: int, diverging: Diverging, expected: int
) -> None:
    assert truncation_point(cache(*own), end_offset=own_end, diverging=diverging) == expected


@pytest.mark.parametrize(
    ("requested", "is_leader", "expected"),
    [
        (4, True, ErrorCode.FENCED_LEADER_EPOCH),
        (6, True, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (5, True, ErrorCode.NONE),
        (-1, True, ErrorCode.NONE),
        (-2, True, ErrorCode.NONE),
        (5, False, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (4, False, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_leader_epoch_of_a_request(requested: int, is_leader: bool, expected: ErrorCode) -> None:
    assert check_leader_epoch(requested, 5, is_leader=is_leader) is expected


def epochs_of(log: list[tuple[int, str]]) -> EpochCache:
    found = EpochCache()
    for offset, (epoch, _) in enumerate(log):
        found.assign(epoch, offset)
    return found


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Two logs as Raft can leave them: records of one epoch are a prefix of that leader's log."""
    logs: list[list[tuple[int, str]]] = [[], []]
    for epoch in range(1, draw(st.integers(1, 6))):
        leader = draw(st.integers(0, 1))
        other = 1 - leader
        if draw(st.booleans()):  # it replicates before it writes
            common = common_prefix(*logs)
            logs[other] = logs[leader][: draw(st.integers(common, len(logs[leader])))]
        logs[leader] += [(epoch, f"{epoch}.{n}") for n in range(draw(st.integers(1, 3)))]
    return logs[0], logs[1]


def common_prefix(one: list[tuple[int, str]], other: list[tuple[int, str]]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


@given(histories())
def test_truncation_ends_at_the_common_prefix(
    logs: tuple[list[tuple[int, str]], list[tuple[int, str]]],
) -> None:
    leader, follower = logs
    common = common_prefix(leader, follower)
    for _ in range(len(follower) + 1):
        end_offset = len(follower)
        if end_offset == 0:
            break
        position = check_fetch_position(
            epochs_of(leader),
            end_offset=len(leader),
            fetch_offset=end_offset,
            last_fetched_epoch=follower[-1][0],
        )
        if isinstance(position, Valid):
            break
        if isinstance(position, UnknownEpoch):
            position = Diverging(epoch=leader[-1][0] if leader else 0, end_offset=len(leader))
        point = truncation_point(epochs_of(follower), end_offset=end_offset, diverging=position)
        assert common <= point < end_offset, "never into the common prefix, and always onwards"
        del follower[point:]
    assert follower == leader[: len(follower)]
