"""quorumlab: Kafka-protocol clusters on a self-managed metadata quorum.

`convert`, `judge`, `findings` and `watch` are for histories on Spark: see `spark`. They are
imported when they are asked for, since they need the extra `spark`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark import Limits as Limits
    from spark import convert as convert
    from spark import findings as findings
    from spark import growing_files as growing_files
    from spark import judge as judge
    from spark import topic_lines as topic_lines
    from spark import watch as watch

__all__ = ["__version__"]

__version__ = "0.1.0"
_OF_SPARK = (
    *("Limits", "convert", "findings", "growing_files"),
    *("judge", "topic_lines", "watch"),
)


def __getattr__(name: str) -> Any:
    if name not in _OF_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import spark

    return getattr(spark, name)
