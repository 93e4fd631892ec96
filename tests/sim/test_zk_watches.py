"""How many watches the brokers of a design leave in ZooKeeper: the rule, counted on a cluster.

B brokers, T topics, P partitions in all, R replicas of each. A watch is a place in one session: a
path, and whether its children are meant.
"""

from collections.abc import Callable, Mapping

import pytest

from tests.sim.zookeeper import Administrator, begin, of
from wire.zk import paths
from wire.zk.designs import DESIGNS
from wire.zk.session import Delete

BROKERS = 3
Rule = Callable[[int, int, int], int]  # of T, P and R

OF_PARTITIONS: Mapping[str, Rule] = {
    # leader, ISR, AR, children and reassignment, in each session that has a replica
    "zk-v1": lambda _topics, partitions, replicas: 5 * partitions * replicas,
    "zk-v2": lambda _topics, partitions, replicas: partitions * replicas,
}
OF_BROKERS: Mapping[str, Callable[[int], int]] = {
    # the list of topics, each topic, reassignments; in zk-v2 the state queue
    "zk-v1": lambda topics: BROKERS * (topics + 2),
    "zk-v2": lambda topics: BROKERS * (topics + 3),
    # /controller; of the controller: brokers, topics, and three lists of work
    "zk-v3": lambda _topics: BROKERS + 5,
    # /controller and settings; of the controller also each topic, and notes of ISRs if there are
    "zk-redesign": lambda topics: 2 * BROKERS + topics + 6,
    "zk-kip497": lambda topics: 2 * BROKERS + topics + 5,
}


def none(_topics: int, _partitions: int, _replicas: int) -> int:
    return 0


def rule(name: str, *, topics: int, partitions: int, replicas: int) -> int:
    return OF_PARTITIONS.get(name, none)(topics, partitions, replicas) + OF_BROKERS[name](topics)


@pytest.mark.parametrize(("topics", "replicas"), [(1, 1), (2, 3)])
@pytest.mark.parametrize("name", list(DESIGNS))
def test_watches_are_those_of_the_rule(name: str, topics: int, replicas: int) -> None:
    cluster = begin(DESIGNS[name])
    admin = Administrator(cluster)
    for topic in range(topics):
        partitions = {n: tuple((n + k) % BROKERS + 1 for k in range(replicas)) for n in range(3)}
        admin.create_topic(f"t{topic}", partitions)
    of_all = [of(f"t{topic}", n) for topic in range(topics) for n in range(3)]
    cluster.run_until(lambda: all(cluster.leaders(each) for each in of_all))
    cluster.run(2000)
    wanted = rule(name, topics=topics, partitions=3 * topics, replicas=replicas)
    assert cluster.ensemble.watch_count == wanted
    of_partitions = {
        place
        for server in cluster.ensemble.servers.values()
        for place in server.watched
        if paths.partition_of(place[0]) is not None
    }
    places = OF_PARTITIONS.get(name, none)(topics, 3 * topics, 1)
    assert len(of_partitions) == places, "places, whoever watches them"


@pytest.mark.parametrize("name", ["zk-v3", "zk-redesign", "zk-kip497"])
def test_former_controller_watches_nothing_but_who_the_next_is(name: str) -> None:
    cluster = begin(DESIGNS[name])
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2)})
    cluster.run_until(lambda: len(cluster.leaders(of("t"))) == 1)
    cluster.run(300)
    watches, first = cluster.ensemble.watch_count, cluster.active_controller
    for _ in range(20):
        admin.do(Delete(path=paths.CONTROLLER))
        cluster.run(300)
        assert cluster.ensemble.watch_count == watches
        if cluster.active_controller != first:
            break
    assert cluster.active_controller not in (None, first), "the lot has fallen on another"


def test_3000_partitions_are_15000_watches_against_3000() -> None:
    """1,000 topics of 3 partitions on 3 brokers. The page does not say how it counts, nor with how
    many replicas. It comes out, for what concerns partitions,

    - as places that are watched, with any number of replicas, or as watches with one replica;
    - as the watches of each broker, where every broker has a replica of everything.
    """
    partitions = 3 * 1000
    v1, v2 = OF_PARTITIONS["zk-v1"], OF_PARTITIONS["zk-v2"]
    assert (v1(1000, partitions, 1), v2(1000, partitions, 1)) == (15_000, 3_000)
    of_all = v1(1000, partitions, 3), v2(1000, partitions, 3)
    assert of_all == (45_000, 9_000)
    assert tuple(count // BROKERS for count in of_all) == (15_000, 3_000)
