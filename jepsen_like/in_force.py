"""A fault in force: whom it struck, how it heals, what shows that it bit. Pure."""

from collections.abc import Callable, Sequence

from jepsen_like.faults import Proof

__all__ = ["InForce", "proof_of"]


class InForce:
    """`prove` is asked for after `heal`, which does nothing the second time."""

    def __init__(
        self, nodes: Sequence[int], *, heal: Callable[[], None], prove: Callable[[], Proof]
    ) -> None:
        self.nodes = tuple(nodes)
        self._heal = heal
        self._prove = prove
        self._is_healed = False

    def heal(self) -> None:
        if not self._is_healed:
            self._is_healed = True
            self._heal()

    def proof(self) -> Proof:
        return self._prove()


def proof_of(seen: Sequence[str]) -> Proof:
    """It bit if anything was seen."""
    return Proof(bit=bool(seen), evidence="; ".join(seen) or "nothing was seen")
