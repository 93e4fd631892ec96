"""A broker may show one image after the other within a turn: these are the images that it may show.

A request is taken at the beginning of a turn, and the image may change before it is answered. So an
invariant accepts whatever was true since the turn began.
"""

from collections.abc import Callable, Iterator

from broker.broker import Broker
from controller.metadata.image import MetadataImage
from jepsen_like.sim.assemblies.cluster.nodes import ClusterNode
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect

__all__ = ["ImagesOfTurn"]


class ImagesOfTurn(Observer):
    def __init__(
        self,
        *,
        node_of: Callable[[Host], ClusterNode],
        images_between: Callable[[int, int], Iterator[MetadataImage]],
    ) -> None:
        self._node_of = node_of
        self._images_between = images_between
        self._shown_at: dict[int, int] = {}  # by node: the offset, when its last turn ended

    def started(self, host: Host) -> None:
        self._shown_at.pop(host.node_id, None)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        broker = self._node_of(host).broker
        if broker is not None:
            self._shown_at[host.node_id] = broker.metadata.published_offset + 1

    def of(self, host: Host, broker: Broker) -> Iterator[MetadataImage]:
        """The present one first, then those of the metadata log since the turn began."""
        yield broker.cluster.image
        last = broker.metadata.published_offset + 1
        yield from self._images_between(self._shown_at.get(host.node_id, 0), last)
