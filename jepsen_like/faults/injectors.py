"""Who injects a kind of fault, and a fault in force. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jepsen_like.faults.fault import Fault, Proof

__all__ = ["InForce", "Injector", "cannot", "proof_of"]


class InForce:
    """Whom a fault struck, how it heals, and what shows that it bit.

    Healing ends it, and starts again what it killed; the second time it does nothing. `prove` is
    asked after that.
    """

    def __init__(
        self, nodes: Sequence[int], *, heal: Callable[[], None], prove: Callable[[], Proof]
    ) -> None:
        self.nodes = tuple(nodes)
        self.proof = prove
        self._heal = heal
        self._is_healed = False

    def heal(self) -> None:
        if not self._is_healed:
            self._is_healed = True
            self._heal()


def proof_of(seen: Sequence[str]) -> Proof:
    """It bit if anything was seen."""
    return Proof(bit=bool(seen), evidence="; ".join(seen) or "nothing was seen")


@dataclass(frozen=True, slots=True)
class Injector:
    """Knows one kind of fault on one cluster: strikes these nodes with it."""

    inject: Callable[[Fault, Sequence[int]], InForce]
    why_not: str = ""  # why this cluster, or this machine, cannot do it ("needs root")


def cannot(why: str) -> Injector:
    def inject(fault: Fault, targets: Sequence[int]) -> InForce:
        raise AssertionError(f"{fault.kind} on {targets}: {why}")

    return Injector(inject, why)
