"""Checks and seed sweeps on Spark.

`convert`, `judge`, `findings` and `watch` are for programs that have a Spark session of their own:
see `conversion`, `library` and `streaming`. They are imported when they are asked for, since they
need the extra `spark`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark.conversion import convert as convert
    from spark.judging import Limits as Limits
    from spark.library import findings as findings
    from spark.library import judge as judge
    from spark.streaming import growing_files as growing_files
    from spark.streaming import topic_lines as topic_lines
    from spark.streaming import watch as watch

_PLACES = {
    "Limits": "judging",
    "convert": "conversion",
    "findings": "library",
    "growing_files": "streaming",
    "judge": "library",
    "topic_lines": "streaming",
    "watch": "streaming",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"spark.{_PLACES[name]}"), name)
