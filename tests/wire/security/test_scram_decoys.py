"""A user that does not exist looks like one that does, wherever it is asked for."""

import re
from collections import Counter

import pytest

from wire.security.scram import ITERATIONS_MIN, SCRAM_SHA_256, SCRAM_SHA_512, Hash
from wire.security.scram_decoys import Likeness, decoy, likenesses

KEY = b"cluster secret"
KAFKA_S_SALT = b"1w9obmgzvjbbrmgnbcbhmwo4hr"
OF_EACH_KIND = likenesses([(4096, KAFKA_S_SALT), (8192, bytes(range(40))), (10, b"too weak")])


@pytest.mark.parametrize("family", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_decoy_hangs_on_the_name_and_the_key_alone(family: Hash) -> None:
    shown = decoy(family, "alice", KEY, OF_EACH_KIND)
    assert decoy(family, "alice", KEY, OF_EACH_KIND) == shown
    others = [decoy(family, "alicf", KEY, OF_EACH_KIND), decoy(family, "alice", b"", OF_EACH_KIND)]
    assert shown.salt not in [each.salt for each in others]
    assert not {shown.stored_key, *(each.stored_key for each in others)} & {shown.salt, b""}


def test_decoys_look_as_often_like_each_kind_of_user_as_users_do() -> None:
    among = likenesses([(8192, bytes(40))] * 9 + [(4096, KAFKA_S_SALT)])
    decoys = [decoy(SCRAM_SHA_512, f"user-{number}", KEY, among) for number in range(1000)]
    kinds = Counter((each.iterations, len(each.salt) == 40) for each in decoys)
    assert set(kinds) == {(8192, True), (4096, False)}
    assert 60 < kinds[4096, False] < 140
    texts = [each.salt for each in decoys if each.iterations == 4096]
    assert all(re.fullmatch(rb"[0-9a-z]{24,26}", salt) for salt in texts)


def test_one_more_user_changes_few_decoys() -> None:
    users = [(4096, KAFKA_S_SALT)] * 50 + [(8192, KAFKA_S_SALT)] * 50
    before, after = likenesses(users), likenesses([*users, (8192, KAFKA_S_SALT)])
    names = [f"user-{number}" for number in range(1000)]
    changed = [
        name
        for name in names
        if decoy(SCRAM_SHA_256, name, KEY, before) != decoy(SCRAM_SHA_256, name, KEY, after)
    ]
    assert len(changed) < 20


def test_without_users_decoys_are_as_kafka_s_tools_make_them() -> None:
    shown = decoy(SCRAM_SHA_256, "alice", KEY, ())
    assert shown.iterations == ITERATIONS_MIN
    assert likenesses([(shown.iterations, shown.salt)]) == (Likeness(ITERATIONS_MIN, 0),)
