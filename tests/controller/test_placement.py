"""Replica placement: striped over racks and brokers, the same for the same seed."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.metadata import placement
from controller.metadata.placement import (
    NoPlacement,
    directory_on,
    place_replicas,
    usable_brokers,
)
from tests.controller.clusters import cluster, directory, registered
from wire.metadata_records import RegisterBrokerRecord
from wire.primitives import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

racks = st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9)


def place(
    *brokers: int | RegisterBrokerRecord, partitions: int = 1, factor: int = 1, seed: int = 0
) -> tuple[tuple[int, ...], ...]:
    return place_replicas(
        usable_brokers(cluster(*brokers)),
        partition_count=partitions,
        replication_factor=factor,
        random=Random(seed),
    )


@given(racks, st.integers(1, 20), st.data())
def test_replicas_are_different_brokers_and_the_first_is_up(
    names: list[str | None], partitions: int, data: st.DataObject
) -> None:
    down = [data.draw(st.booleans()) for _ in names]
    down[data.draw(st.integers(0, len(names) - 1))] = False
    factor = data.draw(st.integers(1, len(names)))
    brokers = [
        registered(n, rack=rack, fenced=fenced)
        for n, (rack, fenced) in enumerate(zip(names, down, strict=True))
    ]
    placed = place(*brokers, partitions=partitions, factor=factor, seed=data.draw(st.integers()))
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert not down[replicas[0]]


@given(racks, st.integers(0, 99), st.data())
def test_placement_repeats_itself_where_it_says(
    names: list[str | None], seed: int, data: st.DataObject
) -> None:
    brokers = [
        registered(n, rack=rack, fenced=n > 0 and data.draw(st.booleans()))
        for n, rack in enumerate(names)
    ]
    factor = data.draw(st.integers(1, len(names)))
    found = place(*brokers, partitions=60, factor=factor, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement._Racks, "period", 60)
        assert place(*brokers, partitions=60, factor=factor, seed=seed) == found


@given(st.integers(1, 5), st.integers(1, 4), st.integers())
def test_replicas_of_a_partition_spread_over_racks(per_rack: int, factor: int, seed: int) -> None:
    brokers = [
        registered(rack * 10 + n, rack=str(rack)) for rack in range(4) for n in range(per_rack)
    ]
    for replicas in place(*brokers, partitions=12, factor=factor, seed=seed):
        assert len({broker // 10 for broker in replicas}) == factor


@given(st.integers(1, 6), st.integers())
def test_leaders_and_replicas_are_even(count: int, seed: int) -> None:
    factor = min(3, count)
    placed = place(*range(count), partitions=count * 4, factor=factor, seed=seed)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {4}
    assert set(Counter(b for replicas in placed for b in replicas).values()) == {4 * factor}


def test_fenced_brokers_are_taken_only_when_others_are_used_up() -> None:
    brokers: list[int | RegisterBrokerRecord] = [1, 2, registered(3, fenced=True)]
    for replicas in place(*brokers, partitions=9, factor=2):
        assert set(replicas) == {1, 2}
    for replicas in place(*brokers, partitions=9, factor=3):
        assert replicas[2] == 3


def test_brokers_in_controlled_shutdown_get_nothing() -> None:
    leaving = registered(2, in_controlled_shutdown=True)
    assert set(place(1, leaving, partitions=5)) == {(1,)}


def test_brokers_whose_directories_are_all_cordoned_get_nothing() -> None:
    both = (directory(2), directory(9))
    full = registered(2, log_dirs=both, cordoned_log_dirs=both)
    half = registered(3, log_dirs=(directory(3), directory(8)), cordoned_log_dirs=(directory(3),))
    placed = place_replicas(
        usable_brokers(cluster(1, full, half, version=30)),
        partition_count=5,
        replication_factor=2,
        random=Random(1),
    )
    assert {broker for replicas in placed for broker in replicas} == {1, 3}


def test_same_seed_places_the_same_and_another_begins_elsewhere() -> None:
    placed = [place(1, 2, 3, partitions=3, factor=2, seed=seed) for seed in range(20)]
    assert placed[0] == place(1, 2, 3, partitions=3, factor=2, seed=0)
    assert len({first for first, *_ in placed}) == 3


def test_too_few_brokers() -> None:
    with pytest.raises(NoPlacement, match="only 2 can take replicas"):
        place(1, 2, factor=3)


def test_nobody_is_up() -> None:
    with pytest.raises(NoPlacement, match="All 1 brokers are fenced"):
        place(registered(1, fenced=True))


def test_directory_of_a_new_replica() -> None:
    image = cluster(
        registered(1),
        registered(2, log_dirs=(directory(2), directory(9))),
        registered(3, log_dirs=()),
    )
    assert directory_on(image.brokers[1]) == directory(1)
    assert directory_on(image.brokers[2]) == DIRECTORY_UNASSIGNED
    assert directory_on(image.brokers[3]) == DIRECTORY_MIGRATING
    assert directory_on(None) == DIRECTORY_UNASSIGNED
