"""A turn with one event in it, for a core that no driver runs."""

from quorum.core.effects import Core, Event

__all__ = ["give"]


def give(core: Core, event: Event, now_ms: int) -> None:
    core.receive(event, now_ms)
    core.settle(now_ms)
