"""Two releases of the software side by side, as while a cluster is upgraded node by node.

Some nodes begin with the release before, which knows older versions of the quorum's requests and no
pre-votes (KIP-996); a node that is started again may have the newer one from then on. Draws from a
random stream of its own.
"""

from collections.abc import Sequence

from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.codec import Codec
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer

__all__ = ["Releases"]

# The newest versions of the release before. Where the log names voters, it knows their disks.
_BEFORE = {"begin_quorum_epoch": 0, "end_quorum_epoch": 0, "fetch": 16, "vote": 0}
_BEFORE_WITH_DISKS = {"fetch": 17, "vote": 1}
_SHARE = 1 / 3  # of the runs
_UPGRADED = 0.3  # of the starts


class Releases(Observer):
    def __init__(
        self, codec: Codec, world: VirtualTime, *, nodes: Sequence[int], kraft_version: int
    ) -> None:
        self._codec = codec
        self._counts = world.counts
        self._random = random = world.fork("releases")
        if random.random() < _SHARE:
            before = _BEFORE if kraft_version == 0 else _BEFORE_WITH_DISKS
            older = random.sample(list(nodes), random.randint(1, len(nodes)))
            codec.older.update(dict.fromkeys(older, before))
            self._counts.fired("older_release", len(older))

    def started(self, host: Host) -> None:
        is_again = host.incarnation > 1 and host.node_id in self._codec.older
        if is_again and self._random.random() < _UPGRADED:
            self._counts.fired("upgraded")
            del self._codec.older[host.node_id]
