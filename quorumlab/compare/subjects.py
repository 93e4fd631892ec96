"""What is compared: a design, and in quorum mode the engine that replicates its log.

A subject is a value. What a design's document admits to lose is said where runs say it
(`jepsen_like.real.runs.admitted`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jepsen_like.real.runs.admitted import ADMITTED, whose_document
from quorum.node.engines import NATIVE
from wire.zk.designs import DESIGNS

__all__ = ["ALL_DESIGNS", "QUORUM", "Subject", "subject_named", "subjects"]

QUORUM = "quorum"
ALL_DESIGNS = (*DESIGNS, QUORUM)  # the oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    design: str
    engine: str = NATIVE

    @property
    def name(self) -> str:
        return self.design if self.engine == NATIVE else f"{self.design}/{self.engine}"

    @property
    def has_zookeeper(self) -> bool:
        return self.design != QUORUM

    @property
    def has_controller(self) -> bool:
        return not self.has_zookeeper or DESIGNS[self.design].has_controller

    @property
    def admits_loss(self) -> str:
        """Why the design's document says that it may lose what it acknowledged; else nothing."""
        return ADMITTED.get(whose_document(self.design, self.engine), {}).get("lost-write", "")


def subjects(designs: Sequence[str], engines: Sequence[str]) -> Iterator[Subject]:
    """In the order of ALL_DESIGNS; an engine is a choice of the quorum alone."""
    for design in ALL_DESIGNS:
        if design not in designs:
            continue
        for engine in engines if design == QUORUM else (NATIVE,):
            yield Subject(design=design, engine=engine)


def subject_named(name: str) -> Subject:
    design, _, engine = name.partition("/")
    return Subject(design=design, engine=engine or NATIVE)
