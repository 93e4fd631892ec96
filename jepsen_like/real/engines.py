"""Whether a local cluster can have a replication engine, and why not."""

from quorum.node.engines import ENGINES, NATIVE, why_no_majority, why_not_installed

__all__ = ["why_no_engine"]


def why_no_engine(engine: str, *, design: str, controllers: int, dynamic: bool) -> str | None:
    """A sentence for people; None if the cluster can be had."""
    if engine not in ENGINES:
        return f"one of {', '.join(ENGINES)}"
    if engine == NATIVE:
        return None
    if design != "quorum":
        return f"{design} keeps its metadata in ZooKeeper: leave the engine out"
    if dynamic:
        return "the members of raftos are its configuration: its voters cannot live in the log"
    return why_no_majority(controllers) or why_not_installed()
