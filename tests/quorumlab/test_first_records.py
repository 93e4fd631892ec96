"""bootstrap.checkpoint: what the first active controller writes, and what cannot be followed."""

from pathlib import Path

import pytest

from quorum.core.storage import StorageError
from quorum.node.directories import DataDirectory, format_directory
from quorumlab.first_records import DEFAULT_RECORDS, first_records, with_levels
from wire.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
    encode_record,
)
from wire.primitives import ZERO_UUID

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def formatted(path: Path, *records: MetadataRecord) -> DataDirectory:
    framed = tuple(encode_record(record) for record in records)
    format_directory(str(path), cluster_id=CLUSTER, node_id=1, bootstrap=framed)
    return DataDirectory(
        path=str(path),
        cluster_id=CLUSTER,
        node_id=1,
        directory_id=ZERO_UUID,
        previous_broker_epoch=-1,
        was_clean=False,
        lock=-1,
    )


def level(name: str, to: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=to)


def test_levels_and_other_records_come_from_the_file(tmp_path: Path) -> None:
    credential = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    directory = formatted(
        tmp_path, level("metadata.version", 20), level("group.version", 1), credential
    )
    found = first_records(directory)
    assert found.levels == {"metadata.version": 20, "group.version": 1}
    assert found.others == (credential,)


def test_directory_without_the_file_begins_as_ever(tmp_path: Path) -> None:
    assert first_records(formatted(tmp_path)) == DEFAULT_RECORDS


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([level("metadata.version", 99)], "metadata.version 99: this release supports 7 to 25"),
        ([level("metadata.version", 25), level("of.others", 1)], "of.others"),
        ([level("group.version", 1)], "metadata.version is not named"),
    ],
)
def test_what_this_release_cannot_follow_is_refused(
    tmp_path: Path, records: list[MetadataRecord], words: str
) -> None:
    with pytest.raises(StorageError, match=words):
        first_records(formatted(tmp_path, *records))


ELR = "eligible.leader.replicas.version"


@pytest.mark.parametrize(
    ("asked", "levels"),
    [
        ({}, {"metadata.version": 25, ELR: 1}),
        ({ELR: 0}, {"metadata.version": 25}),
        ({"metadata.version": 22}, {"metadata.version": 22}),
        (
            {"metadata.version": 23, "group.version": 1},
            {"metadata.version": 23, ELR: 1, "group.version": 1},
        ),
    ],
)
def test_levels_are_those_asked_for_and_what_goes_with_them(
    asked: dict[str, int], levels: dict[str, int]
) -> None:
    assert with_levels(asked).levels == levels


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({ELR: 2}, f"{ELR} 2: this release supports 0 to 1"),
        ({ELR: 1, "metadata.version": 22}, f"{ELR} 1 needs metadata.version 23 or newer"),
        ({"of.others": 1}, "of.others is no feature"),
    ],
)
def test_levels_that_cannot_be_begun_with_are_refused(asked: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        with_levels(asked)


def test_records_name_metadata_version_first() -> None:
    names = [each.name for each in with_levels({"group.version": 1}).records()]  # type: ignore[attr-defined]
    assert names == ["metadata.version", ELR, "group.version"]
