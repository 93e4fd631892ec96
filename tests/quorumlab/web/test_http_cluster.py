"""Nodes that never answered are in the tables where they belong, by what else is known of them."""

from quorumlab.inspection.target import Address
from quorumlab.web.http_cluster import HttpCluster
from tests.quorumlab.top.test_two_views import fenced
from tests.quorumlab.web.test_reader import Log

NOBODY = Address("127.0.0.1", 9)


def test_broker_that_never_answered_is_no_controller_and_an_unknown_node_may_be_both() -> None:
    cluster = HttpCluster(1, {3: NOBODY, 4: NOBODY}, [], Log(state=fenced(3)))
    view = cluster.look()
    assert [each.id for each in view.controllers] == [4]
    assert [(each.id, each.state) for each in view.brokers] == [
        (3, "fenced, no answer"),
        (4, "no answer"),
    ]
