"""The effect by which a broker has a log compacted, and its answer."""

from quorum.core.effects import Answer, Effect
from quorum.core.log_settings import CleaningOrder
from quorum.core.types import Token

__all__ = ["Clean", "Cleaned"]


class Clean(Effect):
    """Compact the log if it is due, in the background. Leads to `Cleaned`."""

    log: str
    token: Token
    order: CleaningOrder


class Cleaned(Answer):
    """The log may be smaller by now. Ask again at `next_ms`, or when it has grown: None."""

    log: str
    size_bytes: int | None
    next_ms: int | None
