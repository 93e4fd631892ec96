"""These tests say which client lacks what, by the version of its request."""

import pytest

from wire.capabilities import NOTHING_LACKING, Capability, lacking
from wire.messages.group_offsets import OffsetCommitRequest
from wire.messages.groups import JoinGroupRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.producing import ProduceRequest
from wire.messages.transactions import EndTxnRequest

BY_ID = Capability.NAMES_TOPICS_BY_ID
TRANSACTIONAL = {Capability.KNOWS_TRANSACTION_ABORTABLE, Capability.ADDS_TO_TRANSACTION}


@pytest.mark.parametrize(
    ("kind", "version", "lacks"),
    [
        (ProduceRequest, 2, {Capability.WRITES_MAGIC_2, Capability.SENDS_ZSTD, *TRANSACTIONAL}),
        (ProduceRequest, 3, {Capability.SENDS_ZSTD, *TRANSACTIONAL}),
        (ProduceRequest, 7, TRANSACTIONAL),
        (ProduceRequest, 11, {Capability.ADDS_TO_TRANSACTION}),
        (ProduceRequest, 12, set()),
        (EndTxnRequest, 1, {Capability.KNOWS_PRODUCER_FENCED, Capability.TAKES_NEXT_EPOCH}),
        (EndTxnRequest, 4, {Capability.TAKES_NEXT_EPOCH}),
        (EndTxnRequest, 5, set()),
        (OffsetCommitRequest, 8, {Capability.KNOWS_GROUP_ID_NOT_FOUND, BY_ID}),
        (OffsetCommitRequest, 9, {BY_ID}),
        (OffsetCommitRequest, 10, set()),
        (JoinGroupRequest, 3, {Capability.JOINS_AGAIN_WITH_ITS_ID, Capability.SKIPS_ASSIGNMENT}),
        (JoinGroupRequest, 4, {Capability.SKIPS_ASSIGNMENT}),
    ],
)
def test_client_lacks_what_came_with_a_later_version(
    kind: type, version: int, lacks: set[Capability]
) -> None:
    assert lacking(kind, version) == lacks


def test_request_of_which_nothing_is_asked_lacks_nothing() -> None:
    assert lacking(MetadataRequest, 0) is NOTHING_LACKING
