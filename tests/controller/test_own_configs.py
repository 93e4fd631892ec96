"""A node hears of its own dynamic configs whenever somebody sets one, to the same again, too."""

from controller.metadata.own_configs import OwnConfigs
from tests.controller.clusters import cluster, config, step

BROKERS = 4


def test_configs_of_the_node_win_and_are_told_when_they_are_set() -> None:
    image, own = cluster(1, 2), OwnConfigs(1)
    assert own.changed(image) is None
    image = step(image, config("a", "all", resource_type=BROKERS, resource=""))
    assert own.changed(image) == {"a": "all"}
    assert own.changed(image) is None
    for value in ("own", "own"):
        image = step(image, config("a", value, resource_type=BROKERS, resource="1"))
        assert own.changed(image) == {"a": "own"}
    image = step(image, config("a", "other", resource_type=BROKERS, resource="2"))
    image = step(image, config("retention.ms", "1", resource="t"))
    assert own.changed(image) is None
    image = step(image, config("a", None, resource_type=BROKERS, resource="1"))
    assert own.changed(image) == {"a": "all"}
    image = step(image, config("a", None, resource_type=BROKERS, resource=""))
    assert own.changed(image) == {}
