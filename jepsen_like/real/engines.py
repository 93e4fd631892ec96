"""The replication engines that a local cluster may have, and why one cannot be had.

raftos is for comparison, and no dependency: it is there if somebody has installed it.
"""

from importlib.util import find_spec

__all__ = ["ENGINES", "ONLY_IN_PROCESSES", "why_no_engine"]

ENGINES = ("native", "raftos")
ONLY_IN_PROCESSES = "it runs in processes only (its state is class-level)"


def why_no_engine(engine: str, *, design: str, controllers: int, dynamic: bool) -> str | None:
    """A sentence for people; None if the cluster can be had."""
    if engine not in ENGINES:
        return f"one of {', '.join(ENGINES)}"
    if engine == "native":
        return None
    if design != "quorum":
        return f"{design} keeps its metadata in ZooKeeper: leave the engine out"
    if dynamic:
        return "the members of raftos are its configuration: its voters cannot live in the log"
    if controllers < 3 or controllers % 2 == 0:
        return f"raftos counts majorities right for 3, 5, ... controllers, not for {controllers}"
    if find_spec("raftos") is None:
        return "raftos is not installed; `make raftos` does it"
    return None
