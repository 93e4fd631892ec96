"""Milestones: how far a node is in dealing with a failure or a request, told as traces.

    detected   who decides has noticed it
    decided    new leaders and ISRs are chosen
    persisted  they are committed in the quorum, or ZooKeeper has acknowledged them
    told       who decides has sent them to a broker, or they may be fetched
    applied    this broker acts upon them
    elected    this process has become the active controller
    ready      it has finished what a new controller has to do first

A core has no clock: whoever takes its traces says when (`quorumlab.milestones`). What is noticed
before it is known what it means, or is told when it is over, is dated by an `instant`: a later
milestone that names it in `since` has happened then.
"""

from enum import StrEnum

from quorum.effects import Trace

__all__ = ["INSTANT", "MILESTONE", "Step", "instant", "milestone"]

MILESTONE = "milestone"
INSTANT = "instant"


class Step(StrEnum):
    DETECTED = "detected"
    DECIDED = "decided"
    PERSISTED = "persisted"
    TOLD = "told"
    APPLIED = "applied"
    ELECTED = "elected"
    READY = "ready"


def milestone(step: Step, *, count: int = 0, since: str = "", **about: object) -> Trace:
    """`count` partitions are concerned. `about` says which broker, epoch or offset."""
    known = (("step", step.value), ("count", count), ("since", since))
    return Trace(event=MILESTONE, fields=(*known, *about.items()))


def instant(name: str) -> Trace:
    """Now is when it was, for the next milestone that names it. The last one counts."""
    return Trace(event=INSTANT, fields=(("name", name),))
