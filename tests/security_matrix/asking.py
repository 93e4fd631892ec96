"""The matrix: every API in every version, asked by everybody on both listeners, of both sides."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.differential.drawing import Draw
from tests.differential.exchanging import (
    CLOSED,
    OF_THE_CONNECTION,
    SILENT,
    Exchange,
    Run,
    preparations,
)
from tests.differential.known import Explained, rows
from tests.differential.sides import BROKER, CONTROLLER
from tests.security_matrix.requests import request
from tests.security_matrix.rights import ABLE, PEOPLE, RIGHTS, WRONG_NODE, Right, able
from tests.security_matrix.sides import SecuredSide, as_asked_by
from wire.api_table import APIS, Api, ListenerKind
from wire.errors import ErrorCode

__all__ = ["Cell", "Matrix", "asked_apis", "outcome"]

_LISTENERS = {BROKER: ListenerKind.BROKER, CONTROLLER: ListenerKind.CONTROLLER}
_LITERAL, _ALLOW = 3, 3
_PREPARED = ("answered", "TRANSACTIONAL_ID_NOT_FOUND")
_PREPARING = -1  # the number of a request that waits for coordinators
KNOWN = Path(__file__).with_name("known.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What both sides answered one who asked, in one version."""

    listener: str
    api: Api
    version: int
    who: str
    ours: str
    kafka: str
    unexplained: tuple[
        str, ...
    ]  # where the answers differ, and no row of known differences says so


def asked_apis(listener: str) -> list[tuple[Api, list[int]]]:
    """Those that the listener serves, and in which versions."""
    kind = _LISTENERS[listener]
    return [
        (api, list(served))
        for api in APIS
        if api.name not in OF_THE_CONNECTION and (served := api.served(kind)) is not None
    ]


def outcome(answer: Any) -> str:
    """The errors in an answer, by name; `closed` where there is none."""
    if not isinstance(answer, dict):
        return {CLOSED: "closed", SILENT: "silent"}.get(answer, str(answer))
    names = Counter(_errors(answer))
    return ", ".join(sorted(names)) or "answered"


def _errors(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                if key.endswith("error_code") and inner:
                    yield ErrorCode(inner).name
                yield from _errors(inner)
        case list():
            for element in value:
                yield from _errors(element)


class Matrix:
    def __init__(self, ours: SecuredSide, kafka: SecuredSide) -> None:
        self.run = Run(0, ours, kafka, explained=Explained((*rows(KNOWN), *rows())))
        for side in (ours, kafka):
            broker, controller = side.open_ports
            open_ports = {broker: "OPEN BROKER", controller: "OPEN CONTROLLER"}
            self.run.twins.ports = {
                **self.run.twins.ports,
                side.name: {**self.run.twins.ports[side.name], **open_ports},
            }

    def prepare(self) -> None:
        """Topics, records, offsets and users, and the rights of everybody."""
        for name, version, body in preparations(Draw(Random(0), self.run.known)):
            self._do(name, version, body)
        rights = [(able(api), right) for api, needed in RIGHTS.items() for right in needed]
        rights.append((WRONG_NODE, RIGHTS["vote"][0]))
        self._do("create_acls", 3, {"creations": [_acl(user, right) for user, right in rights]})

    def cells(
        self, versions: Callable[[list[int]], list[int]] = lambda served: served
    ) -> Iterator[Cell]:
        """`versions` chooses among those that are served."""
        for listener in (BROKER, CONTROLLER):
            for api, served in asked_apis(listener):
                for version in sorted({*versions(served)}):
                    for who in PEOPLE:
                        yield self._cell(listener, api, version, who)

    def _cell(self, listener: str, api: Api, version: int, who: str) -> Cell:
        user = able(api.name) if who == ABLE else who
        body = request(api.name, version, listener, self.run.known)
        exchange = self._exchange(api.name, version, as_asked_by(listener, user), body)
        return Cell(
            listener=listener,
            api=api,
            version=version,
            who=who,
            ours=outcome(exchange.ours),
            kafka=outcome(exchange.kafka),
            unexplained=tuple(self.run.judged(exchange)),
        )

    def _do(self, name: str, version: int, body: dict[str, Any]) -> None:
        exchange = self._exchange(name, version, BROKER, body, number=_PREPARING)
        self.run._settled(exchange)
        assert outcome(exchange.ours) == outcome(exchange.kafka) in _PREPARED, exchange

    def _exchange(
        self, name: str, version: int, listener: str, body: dict[str, Any], *, number: int = 0
    ) -> Exchange:
        return self.run._exchange(number, name, version, listener, body)


def _acl(user: str, right: Right) -> dict[str, Any]:
    return {
        "resource_type": right.kind,
        "resource_name": right.name,
        "resource_pattern_type": _LITERAL,
        "principal": f"User:{user}",
        "host": "*",
        "operation": right.operation,
        "permission_type": _ALLOW,
    }
