"""Who has been asked and has not answered, and who had better be left alone for a while.

One request at a time is in flight to a node, and a node that failed or refused is not asked again
before its backoff is over: so a dead peer costs a bounded number of attempts. All is forgotten at
a change of role (Kafka does the same): what was asked in another role no longer matters, and its
answer is not recognised when it comes.

Source: Kafka's RequestManager.
"""

from dataclasses import dataclass, field

from quorum.core.types import Endpoint

__all__ = ["Peers"]


@dataclass(slots=True)
class Peers:
    busy: dict[int, int] = field(default_factory=dict)  # node id to token number; read only
    _asked: dict[int, Endpoint] = field(default_factory=dict)  # by token number
    _backoff_until_ms: dict[int, int] = field(default_factory=dict)  # by node id

    def is_free(self, node_id: int, now_ms: int) -> bool:
        return node_id not in self.busy and self._backoff_until_ms.get(node_id, 0) <= now_ms

    def asked(self, number: int, to: Endpoint) -> None:
        assert to.node_id not in self.busy, f"two requests in flight to {to}"
        self._asked[number] = to
        self.busy[to.node_id] = number

    def answered(self, number: int) -> Endpoint | None:
        """Whom the request went to; None if it is no longer of interest."""
        to = self._asked.pop(number, None)
        if to is not None:
            del self.busy[to.node_id]
        return to

    def back_off(self, node_id: int, until_ms: int) -> None:
        self._backoff_until_ms[node_id] = until_ms

    def free_at_ms(self, node_id: int) -> int | None:
        """When the node may be asked again; None while a request is in flight."""
        if node_id in self.busy:
            return None
        return self._backoff_until_ms.get(node_id, 0)

    def reset(self) -> None:
        self._asked.clear()
        self.busy.clear()
        self._backoff_until_ms.clear()
