"""The size of a request is that of the bytes that kazoo sends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.zk.accounting import batches, request_bytes
from wire.zk.kazoo_requests import request_of
from wire.zk.session import (
    REQUEST_BYTES_MAX,
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    SetData,
)

PIECES = (b"", bytes(100_000), bytes(400_000), bytes(1_100_000))
WRITES = (
    Create(path="/ä/n", data=b"12345", is_sequential=True),
    SetData(path="/n", data=b"1"),
    Delete(path="/n", version=3),
    Check(path="/node", version=4),
)


@pytest.mark.parametrize(
    "operation",
    [
        *WRITES[:3],
        Multi(writes=WRITES),
        GetData(path="/n", watch=True),
        Exists(path="/n"),
        GetChildren(path="/"),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_request_has_the_size_of_its_bytes(operation: Operation) -> None:
    serialized = request_of(operation, "", lambda _event: None).serialize()
    assert request_bytes(operation) == 8 + len(serialized)


@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=12),
    count_max=st.integers(1, 5),
)
def test_batches_keep_the_order_and_the_limits(pieces: list[bytes], count_max: int) -> None:
    writes = [SetData(path=f"/{number}", data=data) for number, data in enumerate(pieces)]
    groups = list(batches(writes, count_max=count_max))
    assert [write.path for group in groups for write in group] == [each.path for each in writes]
    for group in groups:
        assert 1 <= len(group) <= count_max
        assert len(group) == 1 or request_bytes(Multi(writes=group)) <= REQUEST_BYTES_MAX
