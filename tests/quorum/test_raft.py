"""Replicas that elect, replicate, fail and come back."""

from quorum.roles import Follower, Leader
from tests.quorum.replicas import Replicas
from wire.batch import data_batch


def batch(text: str) -> bytes:
    return data_batch([text.encode()], timestamp_ms=0)


def test_three_voters_elect_one_leader_and_replicate() -> None:
    cluster = Replicas()
    leader = cluster.elect()
    last_offset = cluster.append(leader, batch("a"))
    assert cluster.run_until(
        lambda: all(node.high_watermark == last_offset + 1 for node in cluster.nodes.values())
    ), cluster.describe()
    assert len({cluster.records(node_id) for node_id in cluster.ids}) == 1
    roles = sorted(type(node.role).__name__ for node in cluster.nodes.values())
    assert roles == [Follower.__name__, Follower.__name__, Leader.__name__]


def test_sole_voter_leads_at_once_and_commits_only_after_its_sync() -> None:
    cluster = Replicas([1])
    cluster.disks[1].is_held = True
    cluster.run(5000)
    assert isinstance(cluster.nodes[1].role, Leader)
    assert cluster.nodes[1].high_watermark is None
    cluster.sync(1)
    cluster.run(2)
    assert cluster.nodes[1].high_watermark == 1


def test_observer_follows_and_does_not_count() -> None:
    cluster = Replicas([1, 2, 3, 10], voters=[1, 2, 3])
    leader = cluster.elect()
    cluster.append(leader, batch("a"))
    assert cluster.run_until(lambda: cluster.nodes[10].high_watermark == 2), cluster.describe()
    assert cluster.records(10) == cluster.records(leader.node_id)
    assert not cluster.nodes[10].replica.is_voter


def test_followers_elect_another_when_the_leader_dies() -> None:
    cluster = Replicas()
    first = cluster.elect()
    cluster.append(first, batch("a"))
    cluster.run(100)
    cluster.crash(first.node_id)
    second = cluster.elect()
    assert second.role.epoch > first.role.epoch
    cluster.append(second, batch("b"))
    cluster.start(first.node_id)
    assert cluster.run_until(
        lambda: all(node.high_watermark == second.end_offset for node in cluster.nodes.values())
    ), cluster.describe()
    assert len({cluster.records(node_id) for node_id in cluster.ids}) == 1
