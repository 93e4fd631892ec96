"""The HTTP side of our own nodes: one request, and how it ended."""

import http.client
import json
from dataclasses import dataclass
from typing import Any

__all__ = ["Answered", "ask"]


@dataclass(frozen=True, slots=True)
class Answered:
    """The page is None where there is none, or where it is no JSON, as that of `/livez`."""

    status: int  # 0: no answer
    page: Any = None
    is_sent: bool = True
    reason: str = ""
    date: str | None = None  # by the clock of the node


def ask(
    address: tuple[str, int], path: str, *, timeout_seconds: float = 1.0, body: Any = None
) -> Answered:
    """GET, or POST if there is a body. JSON both ways."""
    connection = http.client.HTTPConnection(*address, timeout=timeout_seconds)
    is_sent = False
    try:
        connection.connect()
        is_sent = True
        if body is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(body).encode())
        answer = connection.getresponse()
        content = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return Answered(0, is_sent=is_sent, reason=f"{type(error).__name__}: {error}")
    finally:
        connection.close()
    try:
        page = json.loads(content) if content else None
    except ValueError:
        page = None
    return Answered(answer.status, page, date=answer.headers["Date"])
