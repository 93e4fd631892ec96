"""quorumlab: Kafka-protocol clusters on a self-managed metadata quorum.

`judge` and `findings` judge histories on Spark: see `spark`. They are imported when they are asked
for, since they need the extra `spark`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark import Limits, findings, judge

__all__ = ["Limits", "__version__", "findings", "judge"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import spark

    return getattr(spark, name)
