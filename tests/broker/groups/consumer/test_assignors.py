"""Assignors: everything goes to somebody who wants it, evenly, and little moves."""

from hypothesis import given
from hypothesis import strategies as st

from broker.groups.consumer.assignors import ASSIGNORS, Subscriber
from broker.groups.consumer.consumer_values import Target
from tests.broker.groups.consumer.consumer_scenes import places, topic_id

NOTHING: Target = frozenset()
TOPICS = "tuv"
counts_of = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 7))
wanted = st.lists(st.sets(st.sampled_from(TOPICS)), min_size=1, max_size=5)


def subscribers(*wanted: set[str], had: dict[str, Target] | None = None) -> dict[str, Subscriber]:
    known = had or {}
    return {
        id_: Subscriber(
            topics=frozenset(topic_id(name) for name in names), target=known.get(id_, NOTHING)
        )
        for id_, names in zip("abcdefgh", wanted, strict=False)
    }


@given(counts_of, wanted, wanted, st.sampled_from(sorted(ASSIGNORS)))
def test_each_partition_that_somebody_wants_has_one_owner_who_wants_it(
    counts: dict[str, int], before: list[set[str]], after: list[set[str]], name: str
) -> None:
    by_id = {topic_id(topic): count for topic, count in counts.items()}
    had = ASSIGNORS[name](subscribers(*before), by_id)
    members = subscribers(*after, had=had)
    given_ = ASSIGNORS[name](members, by_id)
    assert given_.keys() == members.keys()
    asked = frozenset[str]().union(*after)
    everything = [
        (topic_id(topic), index)
        for topic, count in counts.items()
        for index in range(count)
        if topic in asked
    ]
    assert sorted(each for share in given_.values() for each in share) == sorted(everything)
    for id_, share in given_.items():
        assert {topic for topic, _ in share} <= members[id_].topics


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_uniform_moves_no_more_than_it_must(count: int, before: int, after: int) -> None:
    uniform, by_id = ASSIGNORS["uniform"], {topic_id("t"): count}
    had = uniform(subscribers(*[{"t"}] * before), by_id)
    members = subscribers(*[{"t"}] * after, had=had)
    shares = uniform(members, by_id)
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    kept = sum(len(shares[id_] & had.get(id_, NOTHING)) for id_ in shares)
    quota, extra = divmod(count, len(members))
    olds = sorted((len(had.get(id_, NOTHING)) for id_ in shares), reverse=True)
    limits = [quota + (place < extra) for place in range(len(olds))]
    assert kept == sum(min(old, limit) for old, limit in zip(olds, limits, strict=True))


def test_uniform_evens_out_what_members_want_differently() -> None:
    members = subscribers({"t", "u"}, {"u"})
    shares = ASSIGNORS["uniform"](members, {topic_id("t"): 2, topic_id("u"): 2})
    assert shares == {"a": places("t", 0, 1), "b": places("u", 0, 1)}


def test_range_gives_neighbours_and_splits_topics_alike() -> None:
    members = subscribers({"t", "u"}, {"t", "u"})
    shares = ASSIGNORS["range"](members, {topic_id("t"): 3, topic_id("u"): 3})
    assert shares == {
        "a": places("t", 0, 1) | places("u", 0, 1),
        "b": places("t", 2) | places("u", 2),
    }


def test_range_keeps_the_places_of_static_members() -> None:
    """Their ids change; their instance ids do not."""
    topics = frozenset({topic_id("t")})
    members = {
        "z": Subscriber(instance_id="one", topics=topics, target=NOTHING),
        "b": Subscriber(topics=topics, target=NOTHING),
        "a": Subscriber(instance_id="two", topics=topics, target=NOTHING),
    }
    shares = ASSIGNORS["range"](members, {topic_id("t"): 3})
    assert shares == {"z": places("t", 0), "a": places("t", 1), "b": places("t", 2)}
