"""Nodes of a cluster know the same users, and tell of the same ones that do not exist."""

import pytest

from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import METADATA_VERSION
from quorumlab.config import node_config
from quorumlab.security.scram_users import ScramUsers, decoy_key_of
from wire.metadata_records import UserScramCredentialRecord
from wire.security.scram import SCRAM_SHA_512, NotKnownYet

ALICE = UserScramCredentialRecord(
    name="alice",
    mechanism=SCRAM_SHA_512.number,
    salt=b"salt" * 4,
    stored_key=b"stored",
    server_key=b"server",
    iterations=8192,
)


def node(*known: UserScramCredentialRecord, cluster_id: str = "C", secret: str = "s") -> ScramUsers:
    image = MetadataImage(
        features={METADATA_VERSION: 20},
        scram_credentials={(each.name, each.mechanism): each for each in known},
    )
    given = {"process.roles": "broker", "node.id": "1", "listeners": "PLAINTEXT://:0"}
    given |= {"controller.listener.names": "C", "controller.quorum.voters": "2@h:1"}
    config = node_config({**given, "quorumlab.scram.decoy.secret": secret})
    return ScramUsers(lambda: image, lambda: decoy_key_of(config, cluster_id))


def test_two_nodes_make_one_decoy_and_others_another() -> None:
    shown = node(ALICE).decoy(SCRAM_SHA_512, "bob")
    assert node(ALICE).decoy(SCRAM_SHA_512, "bob") == shown
    assert (shown.iterations, len(shown.salt)) == (ALICE.iterations, len(ALICE.salt))
    for other in (node(ALICE, cluster_id="D"), node(ALICE, secret="t")):
        assert other.decoy(SCRAM_SHA_512, "bob").salt != shown.salt


def test_users_are_those_of_the_image() -> None:
    found = node(ALICE).credential(SCRAM_SHA_512, "alice")
    assert found is not None
    assert (found.salt, found.iterations) == (ALICE.salt, ALICE.iterations)
    assert node(ALICE).credential(SCRAM_SHA_512, "bob") is None


def test_nobody_is_told_of_before_users_are_known() -> None:
    early = ScramUsers(lambda: MetadataImage(), lambda: b"")
    with pytest.raises(NotKnownYet):
        early.decoy(SCRAM_SHA_512, "bob")
