"""These tests say which client lacks what, by the version of its request."""

import pytest

from wire.capabilities import NOTHING_LACKING, Capability, lacking
from wire.messages.group_offsets import OffsetCommitRequest
from wire.messages.groups import JoinGroupRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.producing import ProduceRequest


@pytest.mark.parametrize(
    ("kind", "version", "lacks"),
    [
        (ProduceRequest, 2, {Capability.WRITES_MAGIC_2, Capability.SENDS_ZSTD}),
        (ProduceRequest, 3, {Capability.SENDS_ZSTD}),
        (ProduceRequest, 7, set()),
        (OffsetCommitRequest, 8, {Capability.KNOWS_GROUP_ID_NOT_FOUND}),
        (OffsetCommitRequest, 9, set()),
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
