"""Checks and seed sweeps on Spark.

`convert` is for programs that have a Spark session of their own: see `conversion`. It is imported
when it is asked for, since it needs the extra `spark`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark.conversion import convert as convert

_PLACES = {"convert": "conversion"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"spark.{_PLACES[name]}"), name)
