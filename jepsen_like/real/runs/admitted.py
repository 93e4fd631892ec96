"""What documents admit: which rules a run of a design, or of an engine, may break, and why.

A violation is a violation. That its design's document says so itself is told beside it, so that
nobody looks for a mistake in the code where the paper has it. A partition that stays stuck is
admitted by none: whether a lost command or a mistake did that, only the logs of the nodes tell.

Source: the seeds, as docs/zookeeper-mode.md names them; for raftos, docs/engines.md.
"""

from collections.abc import Iterable, Mapping

from jepsen_like.checkers.verdict import Finding
from quorum.node.engines import NATIVE, RAFTOS

__all__ = ["ADMITTED", "admitted_by", "whose_document", "why_admitted"]

_HIGH_WATERMARK = (
    "a follower takes back what lies above a high watermark that lags (KAFKA-1211), and without a "
    "live member of the ISR any live replica leads: potential data loss (seed 000, A.3.2)"
)
_LOSES = (  # the last one: an offset that was taken back is given again
    "lost-write",
    "unseen",
    "vanished",
    "inconsistent-offsets",
    "acknowledged-elsewhere",
    "not-linearizable",
)
_SPLIT_BRAIN = (
    "without epochs a leader that has lost its session acknowledges beside its successor (the "
    "split brain that seed 004 names)"
)
_BY_REPLICAS = (
    "a replica takes back what lies above a high watermark that lags, and after "
    "LeaderElectionWaitTime replicas outside the ISR may lead (seed 002)"
)
_RAFTOS = (
    "raftos forgets its votes, so that a term may have two leaders, and a late copy of a message "
    "cuts off what a follower has acknowledged (docs/engines.md)"
)

ADMITTED: Mapping[str, Mapping[str, str]] = {
    "zk-v1": dict.fromkeys(_LOSES, f"{_SPLIT_BRAIN}; {_BY_REPLICAS}"),
    "zk-v2": dict.fromkeys(_LOSES, _BY_REPLICAS),
    "zk-v3": dict.fromkeys(_LOSES, _HIGH_WATERMARK),
    RAFTOS: dict.fromkeys(_LOSES, _RAFTOS),
}


def whose_document(design: str, engine: str = NATIVE) -> str:
    """The document of the design, unless another engine than ours replicates its log."""
    return design if engine == NATIVE else engine


def why_admitted(whose: str, finding: Finding) -> str:
    """The sentence; nothing if the document promises otherwise."""
    return ADMITTED.get(whose, {}).get(finding.rule, "")


def admitted_by(whose: str, findings: Iterable[Finding]) -> dict[str, str]:
    """By rule, of those that were broken."""
    return {each.rule: why for each in findings if (why := why_admitted(whose, each))}
