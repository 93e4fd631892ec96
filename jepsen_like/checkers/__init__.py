"""Pure checkers: a history in, a verdict out. The same run everywhere, on whatever machine.

`judge(history)` picks those of the workload that the history's header names.
"""

from jepsen_like.checkers.judges import judge

__all__ = ["judge"]
