"""The records of a partition that may be gone, because a client or the topic asked for that.

A request without a clear answer may have been carried out, or may yet be.
"""

from dataclasses import dataclass, field

__all__ = ["ALL", "Deletable"]

ALL = -1  # asked for as an offset: everything below the high watermark of that moment


@dataclass(slots=True)
class Deletable:
    start_offset: int = 0  # the highest start of a log that may be
    _open: list[int] = field(default_factory=list)  # asked for, not answered

    def asked(self, offset: int) -> None:
        self._open.append(offset)

    def acknowledged(self, offset: int, low_watermark: int) -> None:
        """All live replicas start at `low_watermark` or later."""
        self._open.remove(offset)
        self.start_offset = max(self.start_offset, offset, low_watermark)

    def retained(self, start_offset: int) -> None:
        """A replica may start there, since what lies before is too old or too much."""
        self.start_offset = max(self.start_offset, start_offset)

    def refused(self, offset: int) -> None:
        self._open.remove(offset)

    def allows(self, start_offset: int) -> bool:
        """May a log start there? Then it has been decided."""
        if start_offset <= self.start_offset:
            return True
        if ALL not in self._open and start_offset > max(self._open, default=ALL):
            return False
        self.start_offset = start_offset
        return True
