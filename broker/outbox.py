"""The outbox of a broker: `quorum.asking`, under the broker's name."""

from quorum.asking import Answered, Outbox

__all__ = ["OWNER", "Answered", "Outbox"]

OWNER = "broker"
