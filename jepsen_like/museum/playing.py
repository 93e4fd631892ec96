"""One play of a schedule, with a bug or without, and what became of it.

Judged by the simulator's invariants, which stop it at once, or not judged: then it is played to its
end, whatever breaks, and only the clients' history is left to tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import Header, History, Value
from jepsen_like.planted.every_bug import planted
from jepsen_like.scenarios.schedules import ALL_SCHEDULES, Beginning
from jepsen_like.scenarios.stage.story import Production, Step
from jepsen_like.sim.time.ending import ANY_ERROR, described, raised_in
from jepsen_like.sim.time.virtual_time import EventsSpent
from jepsen_like.sim.violation import Crash, Stuck, Violation

__all__ = ["End", "Played", "end_of", "play", "played"]

_DIRECTORS = ("jepsen_like.scenarios.", "jepsen_like.real.museum.")  # they assert what they are


class End(StrEnum):
    HOLDS = "holds"
    VIOLATED = "violated"
    STUCK = "stuck"
    CRASHED = "crashed"
    VOID = "void"  # with these times it was not the schedule that it was meant to be
    ERROR = "error"  # an exception that no rule foresees


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    end: End
    rule: str = ""
    detail: str = ""
    at_ms: int  # of virtual time
    steps: tuple[Step, ...]
    history: History

    @property
    def is_broken(self) -> bool:
        return self.end in (End.VIOLATED, End.STUCK, End.CRASHED)

    def verdict(self) -> Verdict:
        """By what clients saw alone."""
        return judge(self.history)


def play(
    schedule: str,
    *,
    plants: str = "",
    settings: Mapping[str, Value] | None = None,
    seed: int = 0,
    is_judged: bool = True,
) -> Played:
    """`seed` 0 has the times that the schedule was written for, any other has its own."""
    production = Production(settings=settings or {}, seed=seed, is_judged=is_judged)
    with planted(plants):
        try:
            end, rule, detail = end_of(schedule, production)
        except ANY_ERROR as error:
            end, rule, detail = End.ERROR, type(error).__name__, described(error)
    return played(production, (end, rule, detail), schedule=schedule, bug=plants)


def played(
    production: Production,
    ended: tuple[End, str, str],
    *,
    schedule: str,
    bug: str,
    workload: str = "log",
) -> Played:
    """How it ended, and what is in the account."""
    production.end()
    end, rule, detail = ended
    options = {"schedule": schedule, "bug": bug, "idempotent": False}
    header = Header(workload=workload, seed=production.seed, options=options)
    return Played(
        end=end,
        rule=rule,
        detail=detail,
        at_ms=production.now_us() // 1000,
        steps=tuple(production.steps),
        history=History(header=header, ops=production.ops),
    )


def end_of(
    schedule: str, production: Production, beginnings: Mapping[str, Beginning] | None = None
) -> tuple[End, str, str]:
    """Simulated, or on what is begun so."""
    try:
        ALL_SCHEDULES[schedule].run(production, beginnings)
    except Violation as violation:
        return End.VIOLATED, violation.rule, violation.detail
    except Stuck as stuck:
        return End.STUCK, stuck.rule, stuck.detail
    except EventsSpent as spent:
        return End.STUCK, "events", f"no rest after {spent} events"
    except Crash as crash:
        return End.CRASHED, crash.rule, crash.detail
    except AssertionError as missed:
        if not raised_in(missed).startswith(_DIRECTORS):
            raise
        return End.VOID, "", str(missed)
    return End.HOLDS, "", ""
