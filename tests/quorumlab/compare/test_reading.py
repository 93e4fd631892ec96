"""Reading back: who is asked for a partition whose leader is not where it was."""

from jepsen_like.real.client_settings import PLAIN
from jepsen_like.real.layout import NodeLayout
from quorumlab.compare.experiments import topics_for
from quorumlab.compare.reading import _Reader


def broker(number: int) -> NodeLayout:
    return NodeLayout(
        id=number,
        roles=("broker",),
        host="127.0.0.1",
        port=number,
        controller_port=None,
        http_port=0,
        dir="",
    )


def test_every_broker_is_asked_also_one_that_a_replica_has_moved_to() -> None:
    brokers = [broker(number) for number in (1, 2, 3)]
    reader = _Reader(brokers, [*topics_for([(1, 2)])], {0: 1}, lambda _: 2, PLAIN)
    asked = []
    for _ in brokers:
        reader._ask_another(0)
        asked.append(reader.left[0])
    assert sorted(asked) == [1, 2, 3]
