"""The outbox of a broker: `quorum.core.outbox`, under the broker's name."""

from quorum.core.outbox import Answered, Outbox

__all__ = ["OWNER", "Answered", "Outbox"]

OWNER = "broker"
