"""Observers of single moments, for tests that look on."""

from collections.abc import Callable

from jepsen_like.sim.world.observer import MOMENTS, Observer

__all__ = ["in_place_of", "looking"]


def looking(**looks: Callable[..., None]) -> Observer:
    """Calls what stands under the name of a moment."""
    found = Observer()
    for moment, look in looks.items():
        assert moment in MOMENTS, moment
        setattr(found, moment, look)
    return found


def in_place_of(observer: Observer, **looks: Callable[..., None]) -> Observer:
    """The same observer, but for these moments."""
    return looking(**{moment: getattr(observer, moment) for moment in MOMENTS} | looks)
