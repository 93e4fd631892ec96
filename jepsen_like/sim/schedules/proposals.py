"""What clients of a simulated quorum see: whoever proposes is told when that is committed.

Each record that a node proposes is a send, acknowledged at its offset when the same process applies
it; at the end every node is asked for all that it has applied. So a quorum has the history of a
log, and the checkers of logs can judge it: a commit that is lost, or two at one offset.
"""

from jepsen_like.history import Kind
from jepsen_like.sim.host import Host
from jepsen_like.sim.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.schedules.production import Production
from wire.batch import headers, records_of

__all__ = ["Proposals"]

_KEY = "metadata-0"
_SERIAL_BYTES = 8  # what a value begins with, and no other does

Life = tuple[int, int]  # a process: its node, and which start of it


class Proposals:
    def __init__(self, production: Production, quorum: SimulatedQuorum) -> None:
        self._production = production
        self._quorum = quorum
        self._open: dict[tuple[Life, int], int] = {}  # by serial: the process that waits
        self._applied: dict[Life, list[list[int]]] = {}  # [offset, serial]
        quorum.proposed = self._has_proposed
        quorum.applied = self._has_applied

    def _has_proposed(self, host: Host, values: list[bytes]) -> None:
        for value in values:
            serial = _serial(value)
            process = self._production.invoke("send", [["send", _KEY, serial]])
            self._open[(_life(host), serial)] = process

    def _has_applied(self, host: Host, batches: bytes) -> None:
        applied = self._applied.setdefault(_life(host), [])
        for position, header in headers(batches):
            if header.is_control:
                continue
            for record in records_of(batches[position : position + header.size_bytes]):
                serial = _serial(record.value or b"")
                applied.append([record.offset, serial])
                process = self._open.pop((_life(host), serial), None)
                if process is not None:
                    done = [["send", _KEY, [record.offset, serial]]]
                    self._production.complete(process, Kind.OK, done)

    def read_all(self) -> None:
        """Ask every node that is up. Means nothing where snapshots stand for records."""
        for host in self._quorum.up():
            process = self._production.invoke("assign", [_KEY], seek="beginning")
            self._production.complete(process, Kind.OK)
            self._production.go_on(process, "poll", [["poll"]])
            pairs = self._applied.get(_life(host), [])
            done = [["poll", {_KEY: pairs} if pairs else {}]]
            self._production.complete(process, Kind.OK, done, extra={"caught_up": True})
        self._production.end()


def _life(host: Host) -> Life:
    return host.node_id, host.incarnation


def _serial(value: bytes) -> int:
    return int.from_bytes(value[:_SERIAL_BYTES], "big")
