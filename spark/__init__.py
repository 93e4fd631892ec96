"""Checks and seed sweeps on Spark.

`judge` and `findings` are for programs that have a Spark session of their own: see `library`. They
are imported when they are asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark.judging import Limits
    from spark.library import findings, judge

__all__ = ["Limits", "findings", "judge"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spark import judging, library

    return getattr(judging if name == "Limits" else library, name)
