"""A line of log for each thing that a principal asked for and may not do, or may.

Denials are told at INFO, what is allowed at DEBUG. Whoever lacks a right chooses how many names a
request has: no more than a few of them get a line.

Source: Kafka's StandardAuthorizerData.logAuditMessage, whose logger and form these are.
"""

import logging
from collections.abc import Sequence

from controller.authorization.access import Asked
from quorum.core.effects import Request

__all__ = ["LoggedAudit"]

_log = logging.getLogger("kafka.authorizer.logger")
_LINES_MAX = 10  # of one request


class LoggedAudit:
    def __init__(self) -> None:
        self.wants_allowed = _log.isEnabledFor(logging.DEBUG)

    def tell(
        self, request: Request, *, denied: Sequence[Asked], allowed: Sequence[Asked] = ()
    ) -> None:
        _tell(logging.INFO, "Denied", request, denied)
        _tell(logging.DEBUG, "Allowed", request, allowed)

    def tell_that_acls_lack(self, why: str) -> None:
        _log.warning(
            "nobody but super users may do anything: ACLs may be lacking, which a later release "
            "wrote to the metadata log (%s): run that release",
            why,
        )


def _tell(level: int, decided: str, request: Request, asked: Sequence[Asked]) -> None:
    api = type(request.body).__name__.removesuffix("Request")
    for operation, kind, name in asked[:_LINES_MAX]:
        _log.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s "
            "for request = %s",
            _line(str(request.principal)),
            decided,
            operation.name,
            request.client_host,
            kind.title,
            _line(name),
            api,
        )
    if len(asked) > _LINES_MAX:
        _log.log(level, "... and %d more of the same request", len(asked) - _LINES_MAX)


def _line(text: str) -> str:
    """Names are the client's to choose: they make no lines of their own."""
    return text if text.isprintable() else repr(text)
