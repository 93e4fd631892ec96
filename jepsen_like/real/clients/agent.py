"""Clients of the HTTP side of our own nodes: linearizable reads, plain registers, lists of topics.

What asks for the active controller looks for it at every controller; if none says that it leads,
nothing was sent.
"""

from urllib.parse import quote

from jepsen_like.histories.history import Kind, Value
from jepsen_like.real.clients.target import Target
from jepsen_like.real.kafka_client import NotConnected
from jepsen_like.real.pages import Answered
from jepsen_like.workloads.metadata_workloads import CONFIG
from jepsen_like.workloads.workload import Done, Wish

__all__ = ["Agent"]

_LOOKING_SECONDS = 0.5  # for one controller to say whether it leads


class Agent:
    """The client of the plain register, and what others ask of nodes by HTTP."""

    def __init__(self, target: Target, *, timeout_seconds: float) -> None:
        self._target = target
        self._controllers = tuple(target.controllers)
        self._timeout_seconds = timeout_seconds
        self._active: int | None = None  # as it was last seen

    def invoke(self, wish: Wish) -> Done:
        try:
            return self._invoke(wish)
        except NotConnected as error:
            return Done(kind=Kind.FAIL, error=str(error))

    def close(self) -> None:
        """No connection is kept."""

    def active_controller(self) -> int:
        """The controller that says now that it leads. Raises NotConnected if none does."""
        order = sorted(self._controllers, key=lambda node: node != self._active)
        for node in order:
            answered = self._target.page(node, "/v1/node", timeout_seconds=_LOOKING_SECONDS)
            if answered.status == 200 and answered.page["quorum"]["role"] == "leader":
                self._active = node
                return node
        raise NotConnected("no controller says that it is the active one")

    def _invoke(self, wish: Wish) -> Done:
        match wish:
            case Wish(f="read" | "write" | "cas" as f, value=[key, value]):
                return self._register(f, key, value)
            case _:
                return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")

    def read_committed(self, topic: str) -> Done:
        """The register's value, which the active controller confirms."""
        try:
            node = self.active_controller()
        except NotConnected as error:
            return Done(kind=Kind.FAIL, error=str(error))
        path = f"/v1/agent/read-committed?topic={quote(topic)}&config={CONFIG}"
        answered = self._target.page(node, path, timeout_seconds=self._timeout_seconds)
        if answered.status != 200:
            return Done(kind=Kind.FAIL, error=_why(answered))
        value = answered.page.pop("value")
        held = None if value is None else int(value)
        return Done(kind=Kind.OK, value=[topic, held], extra={"node": node, **answered.page})

    def _register(self, f: str, key: str, value: Value) -> Done:
        node = self.active_controller()
        answered = self._target.page(
            node,
            "/v1/agent/register",
            timeout_seconds=self._timeout_seconds,
            body={"f": f, "key": key, "value": value},
        )
        if answered.status != 200:
            # An answer that is no outcome refuses the request; no answer leaves it in doubt.
            in_doubt = f != "read" and answered.is_sent and answered.status == 0
            return Done(kind=Kind.INFO if in_doubt else Kind.FAIL, error=_why(answered))
        page = answered.page
        kind = Kind(page["outcome"])
        if kind is Kind.OK:
            return Done(kind=kind, value=[key, page["value"] if f == "read" else value])
        seen = {"seen": page["seen"]} if "seen" in page else {}
        return Done(kind=Kind.FAIL if f == "read" else kind, error=page.get("error"), extra=seen)

    def topics(self, node: int, prefix: str) -> Done:
        """Those that the node knows and whose names begin so."""
        answered = self._target.page(node, "/v1/topics", timeout_seconds=self._timeout_seconds)
        if answered.status != 200:
            return Done(kind=Kind.FAIL, error=_why(answered))
        names = sorted(name for name in answered.page["topics"] if name.startswith(prefix))
        return Done(kind=Kind.OK, value=names, extra={"node": node})


def _why(answered: Answered) -> str:
    if answered.status == 0:
        return answered.reason if answered.is_sent else "not connected"
    return f"{answered.status}: {(answered.page or {}).get('error', '')}"
