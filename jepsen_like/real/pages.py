"""The HTTP side of our own nodes: one request, and how it ended."""

import http.client
import json
import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jepsen_like.real.secured import SecurityFiles, encrypts

__all__ = ["Answered", "PageAccess", "ask", "page_access"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAccess:
    """What nodes that are secured want to be shown."""

    authorization: str = field(default="", repr=False)  # the header
    authorities: str | None = None  # who signs their certificates, in PEM; None: they speak no TLS

    def connection(self, address: tuple[str, int], seconds: float) -> http.client.HTTPConnection:
        if self.authorities is None:
            return http.client.HTTPConnection(*address, timeout=seconds)
        tls = _context(self.authorities)
        return http.client.HTTPSConnection(*address, timeout=seconds, context=tls)


@lru_cache(maxsize=4)
def _context(authorities: str) -> ssl.SSLContext:
    """An empty text: those that this machine trusts."""
    return ssl.create_default_context(cadata=authorities or None)


_OPEN = PageAccess()


@dataclass(frozen=True, slots=True)
class Answered:
    """The page is None where there is none, or where it is no JSON, as that of `/livez`."""

    status: int  # 0: no answer
    page: Any = None
    is_sent: bool = True
    reason: str = ""
    date: str | None = None  # by the clock of the node


def page_access(security: str, files: SecurityFiles) -> PageAccess | None:
    """How the pages of nodes are asked; None: as anybody may."""
    if not security:
        return None
    line = files.http_users.read_text().splitlines()[0]
    return PageAccess(
        authorization=f"Basic {b64encode(line.encode()).decode()}",
        authorities=files.authority.read_text() if encrypts(security) else None,
    )


def ask(
    address: tuple[str, int],
    path: str,
    *,
    timeout_seconds: float = 1.0,
    body: Any = None,
    access: PageAccess | None = None,
) -> Answered:
    """GET, or POST if there is a body. JSON both ways."""
    access = access or _OPEN
    headers = {"Authorization": access.authorization} if access.authorization else {}
    connection = access.connection(address, timeout_seconds)
    is_sent = False
    try:
        connection.connect()
        is_sent = True
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            connection.request("POST", path, json.dumps(body).encode(), headers)
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
