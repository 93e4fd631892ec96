"""bootstrap.checkpoint: what the first active controller writes, and what cannot be followed."""

import shutil
from pathlib import Path

import pytest

from quorum.core.storage import StorageError
from quorum.node.bootstrap import BOOTSTRAP, format_bootstrap
from quorum.node.directories import DataDirectory, format_directory
from quorumlab.first_records import DEFAULT_RECORDS, first_records, of_release, with_levels
from wire.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
    encode_record,
)
from wire.primitives import ZERO_UUID

GOLDEN = Path(__file__).parent.parent / "golden"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def formatted(path: Path, *records: MetadataRecord) -> DataDirectory:
    framed = tuple(encode_record(record) for record in records)
    format_directory(str(path), cluster_id=CLUSTER, node_id=1, bootstrap=framed)
    return directory_at(path)


def directory_at(path: Path) -> DataDirectory:
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
        ([level("metadata.version", 99)], "metadata.version 99: this release supports 7 to 33"),
        ([level("metadata.version", 25), level("of.others", 1)], "of.others"),
        ([level("group.version", 1)], "metadata.version is not named"),
    ],
)
def test_what_this_release_cannot_follow_is_refused(
    tmp_path: Path, records: list[MetadataRecord], words: str
) -> None:
    with pytest.raises(StorageError, match=words):
        first_records(formatted(tmp_path, *records))


GV = "group.version"
ELR = "eligible.leader.replicas.version"
TV = "transaction.version"


@pytest.mark.parametrize(
    ("asked", "levels"),
    [
        ({}, {"metadata.version": 33, ELR: 1, GV: 1, TV: 2}),
        ({ELR: 0, GV: 0, TV: 0}, {"metadata.version": 33}),
        ({"metadata.version": 24}, {"metadata.version": 24, ELR: 1, GV: 1, TV: 2}),
        ({"metadata.version": 22}, {"metadata.version": 22, GV: 1}),
        ({"metadata.version": 21}, {"metadata.version": 21}),
        (
            {"metadata.version": 23, GV: 0},
            {"metadata.version": 23, ELR: 1},
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
        ({"share.version": 1}, "share.version 1: this release serves no share groups"),
        ({"streams.version": 1}, "streams.version 1: this release serves no streams groups"),
        ({ELR: 1, "metadata.version": 22}, f"{ELR} 1 needs metadata.version 23 or newer"),
        ({"of.others": 1}, "of.others is no feature"),
    ],
)
def test_levels_that_cannot_be_begun_with_are_refused(asked: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        with_levels(asked)


def test_records_name_metadata_version_first() -> None:
    names = [each.name for each in with_levels({"group.version": 1}).records()]  # type: ignore[attr-defined]
    assert names == ["metadata.version", ELR, "group.version", TV]


@pytest.mark.parametrize(
    ("release", "levels"),
    [
        ("4.0", {"metadata.version": 25, ELR: 1, GV: 1, TV: 2}),
        ("4.3", {"metadata.version": 30, ELR: 1, GV: 1, TV: 2}),
        ("4.3.1", {"metadata.version": 30, ELR: 1, GV: 1, TV: 2}),
        ("3.9-IV0", {"metadata.version": 21}),
    ],
)
def test_cluster_begins_as_one_of_another_release(release: str, levels: dict[str, int]) -> None:
    assert of_release(release).levels == levels


@pytest.mark.parametrize("release", ["", "4", "4.9", "4.3-IV7", "three"])
def test_unknown_release_is_refused(release: str) -> None:
    with pytest.raises(ValueError, match=r"no release that is known here: 3.3-IV3 to 4.4-IV2 are"):
        of_release(release)


@pytest.mark.parametrize("formatted_by_kafka", ["after-format", "static-after-format"])
def test_first_records_of_kafka_4_4_stand_in_the_first_snapshot(formatted_by_kafka: str) -> None:
    """KIP-1170. What they say of features that we do not serve is taken as it is."""
    path = GOLDEN / "newest" / formatted_by_kafka
    found = first_records(directory_at(path))
    others = {"group.version": 1, "share.version": 2, "streams.version": 1}
    assert found.levels == {"metadata.version": 33, ELR: 1, TV: 2, **others}
    (user,) = found.others
    assert isinstance(user, UserScramCredentialRecord)
    assert user.name == "root"


def test_first_records_of_the_snapshot_come_before_those_of_the_file(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "newest" / "after-format", tmp_path, dirs_exist_ok=True)
    older = encode_record(level("metadata.version", 25))
    (tmp_path / BOOTSTRAP).write_bytes(format_bootstrap([older]))
    assert first_records(directory_at(tmp_path)).levels["metadata.version"] == 33
