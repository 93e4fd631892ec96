"""How a scenario begins: what is started, and with which settings."""

from jepsen_like.scenarios.directed_quorum import QuorumSettings
from jepsen_like.scenarios.forms import Forms, Misused

__all__ = ["STARTS"]

STARTS = Forms()
_NODES_MAX = 9


@STARTS.form("start COUNT", "a quorum of so many voters")
def start(count: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count))


@STARTS.form("start COUNT and OTHER observers", "a quorum of voters, and nodes that only follow")
def start_observers(count: int, other: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count, observers=other))


@STARTS.form("start COUNT with a snapshot every OTHER bytes", "the log before it is dropped")
def start_snapshots(count: int, other: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count, snapshot_bytes=other))


@STARTS.form("start COUNT with fetches of OTHER bytes", "or of one batch, if it is larger")
def start_small_fetches(count: int, other: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count, fetch_bytes=other))


@STARTS.form("start COUNT with equal timers", "no time-out has a random part")
def start_equal_timers(count: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count, are_timers_equal=True))


def _checked(settings: QuorumSettings) -> QuorumSettings:
    if not settings.voters or settings.voters + settings.observers > _NODES_MAX:
        raise Misused(f"a quorum here has 1 to {_NODES_MAX} nodes, and a voter among them")
    return settings
