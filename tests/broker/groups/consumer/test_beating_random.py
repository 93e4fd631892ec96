"""Members come, go and lose answers; topics come and grow: no partition has two owners.

What each member believes that it has is held against all others, after every step. In the end all
that there is has been shared out, as evenly as it can be.
"""

from random import Random

import pytest

from broker.groups.consumer.consumer_group import ConsumerGroupState
from jepsen_like.planted.every_bug import planted
from tests.broker.groups.consumer.consumer_scenes import Scene, Topics, topic_id

STEPS = 60
SEEDS = range(32)
NAMES = ("a", "b", "c", "d")


def check(scene: Scene) -> None:
    """Two owners: what one has not given back, another was given."""
    owners: dict[object, str] = {}
    for member_id, owned in scene.owned.items():
        for partition in owned:
            owner = owners.setdefault(partition, member_id)
            assert owner == member_id, f"{partition}: {owner} and {member_id}"
    known = [
        partition
        for member in scene.group.members.values()
        for partition in (*member.current.assigned, *member.current.revoking)
    ]
    assert len(known) == len(set(known)), "the group itself says that two have one"
    assert set(known) == scene.group.owners.keys()


def has_what_it_wants(scene: Scene, member_id: str) -> None:
    """Whatever it had before, and whenever there will be another assignment."""
    member = scene.group.members.get(member_id)
    if member is not None:
        wanted = {topic_id(name) for name in scene.group.topics_of(member)}
        assert wanted.issuperset(topic for topic, _ in member.current.assigned), member


def step(scene: Scene, random: Random) -> None:
    member_id = random.choice(NAMES)
    scene.now_ms += random.choice((0, 300))
    match random.randrange(12):
        case 0 if member_id in scene.group.members:
            scene.leave(member_id)
        case 1 if member_id in scene.group.members:
            scene.expire(member_id)
        case 2:
            scene.topics.counts["t"] = min(scene.topics.counts["t"] + 1, 9)
        case 3:
            scene.topics.counts["u"] = 3
        case 4:
            scene.beat(member_id, is_lost=True)
        case 5 if member_id in scene.epochs:
            names = random.choice((("t",), ("t", "u"), ("u",)))
            scene.beat(member_id, subscribed_topic_names=names)
        case 6 if member_id in scene.epochs:
            assignor = random.choice(("uniform", "range"))
            scene.beat(member_id, server_assignor=assignor)
        case _:
            scene.beat(member_id)
    check(scene)
    has_what_it_wants(scene, member_id)


def run(seed: int) -> Scene:
    random = Random(seed)
    scene = Scene(Topics(t=3), assignment_interval_ms=random.choice((0, 1000)))
    for _ in range(STEPS):
        step(scene, random)
    for member_id in tuple(scene.group.members):
        if member_id not in scene.epochs:
            scene.expire(member_id)  # it never heard that it is a member
    for member_id in tuple(scene.epochs):
        scene.beat(member_id, subscribed_topic_names=("t", "u"), server_assignor="uniform")
    for _ in range(3):
        scene.now_ms += 1000
        scene.settle()
    check(scene)
    return scene


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_owners_and_all_is_shared_in_the_end(seed: int) -> None:
    scene = run(seed)
    if not scene.group.members:
        return
    assert scene.group.state is ConsumerGroupState.STABLE
    all_of_them = {
        (topic_id(name), index)
        for name, count in scene.topics.counts.items()
        for index in range(count)
    }
    assert set().union(*scene.owned.values()) == all_of_them
    sizes = scene.shares().values()
    assert max(sizes) - min(sizes) <= 1


def is_found(seeds: range = SEEDS) -> bool:
    for seed in seeds:
        try:
            run(seed)
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("bug", ["gives_what_another_has", "waits_for_no_revocation"])
def test_planted_bug_is_found(bug: str) -> None:
    with planted(bug):
        assert is_found()
