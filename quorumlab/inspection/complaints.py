"""What is wrong, bounded: the first of many, and how many there were."""

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Complaints"]

_TOLD_MAX = 100


@dataclass(slots=True)
class Complaints:
    told: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, problem: object) -> None:
        self.count += 1
        if len(self.told) < _TOLD_MAX:
            self.told.append(str(problem))

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[str]:
        """Those that are told, and how many more there are."""
        yield from self.told
        if self.count > len(self.told):
            yield f"and {self.count - len(self.told)} more"
