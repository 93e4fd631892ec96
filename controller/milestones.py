"""Milestones: how far a node is in dealing with a failure or a request, told as traces.

    detected   who decides has noticed it
    decided    new leaders and ISRs are chosen
    persisted  they are committed in the quorum, or ZooKeeper has acknowledged them
    told       who decides has sent them to a broker, or they may be fetched
    applied    this broker acts upon them
    elected    this process has become the active controller
    ready      it has finished what a new controller has to do first

A core has no clock: whoever takes its traces says when (`quorumlab.node_parts`). What is noticed
before it is known what it means, or is told when it is over, is dated by an `instant`: a later
milestone that names it in `since` has happened then.
"""

from dataclasses import dataclass
from enum import StrEnum

from quorum.core.effects import Trace

__all__ = ["INSTANT", "MILESTONE", "Cause", "Occasion", "Step", "instant", "milestone"]

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


class Occasion(StrEnum):
    """What has failed, or what was asked for: `what` of a milestone."""

    BROKER_FAILED = "broker-failed"
    BROKER_JOINED = "broker-joined"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    CONTROLLER_FAILED = "controller-failed"
    DIRECTORIES = "directories"
    ELECTION = "election"
    IDLE = "idle"
    ISR = "isr"
    REASSIGNMENT = "reassignment"
    REQUEST = "request"  # another than those above
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something is decided: what has happened, and to which broker or topic (-1: to none)."""

    occasion: Occasion
    id: int | str = -1


def milestone(
    step: Step, cause: Cause | None = None, *, count: int = 0, since: str = "", **about: object
) -> Trace:
    """`count` partitions are concerned. `about` says which broker, epoch or offset.

    Without a `cause` nobody has to know why: who applies a change is not told.
    """
    known = (("step", step.value), ("count", count), ("since", since))
    why = () if cause is None else (("what", cause.occasion.value), ("id", cause.id))
    return Trace(event=MILESTONE, fields=(*known, *why, *about.items()))


def instant(name: str) -> Trace:
    """Now is when it was, for the next milestone that names it. The last one counts."""
    return Trace(event=INSTANT, fields=(("name", name),))
