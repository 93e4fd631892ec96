"""Where the syncs of a log run: in the driver's thread while they are fast, else in another.

A sync of a good disk takes 0.1 to 0.3 ms, and handing it to a thread and back as long again: half
of what a commit waits for. A sync of a bad disk may take seconds, in which a node that waits for it
answers nobody. So a log begins in a thread, and goes back to one after the first inline sync that
takes too long: a disk that hangs costs the node one stop.

Decides from durations that it is told; reads no clock.
"""

__all__ = ["SYNCS_TO_BEGIN", "SYNCS_TO_TRUST_AGAIN", "SyncPace"]

# In a row, each under half the bound. A thread's own delays count, too, so that more would seldom
# come together on a busy node.
SYNCS_TO_BEGIN = 10
SYNCS_TO_TRUST_AGAIN = 100


class SyncPace:
    __slots__ = ("_bound_seconds", "_fast_in_a_row", "_needed")

    def __init__(self, bound_seconds: float) -> None:
        """`bound_seconds`: how long one sync inline may take; 0: none is ever inline."""
        self._bound_seconds = bound_seconds
        self._fast_in_a_row = 0
        self._needed = SYNCS_TO_BEGIN

    @property
    def is_inline(self) -> bool:
        """May the next sync run in the driver's thread?"""
        return self._fast_in_a_row >= self._needed

    def took(self, seconds: float) -> bool:
        """A sync has ended, wherever it ran. Must the next ones run in a thread because of it?"""
        if self._fast_in_a_row >= self._needed:
            if seconds <= self._bound_seconds:
                return False
            self._fast_in_a_row = 0
            self._needed = SYNCS_TO_TRUST_AGAIN
            return True
        is_fast = seconds < self._bound_seconds / 2
        self._fast_in_a_row = self._fast_in_a_row + 1 if is_fast else 0
        return False
