"""A compare-and-set register whose values are all new: what each came from is known."""

from dataclasses import dataclass, field
from typing import Any

from tests.agreement.objects import KEY, CasRegister

__all__ = ["ChainRegister"]


@dataclass
class ChainRegister(CasRegister):
    written: list[int | None] = field(default_factory=lambda: [None])

    def wish(self, number: int) -> tuple[str, Any]:
        f = self.random.choice(["read", "write", "cas", "cas"])
        if f == "read":
            return f, [KEY, None]
        old = self.random.choice([self.value, self.value, *self.written[-2:], number])
        self.written.append(number)
        return f, [KEY, number if f == "write" else [old, number]]
