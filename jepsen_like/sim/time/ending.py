"""How a run ended: with what was broken, or with an exception that nobody expected.

    safety, liveness, crash    a rule was broken: `BrokenRule`
    error                      any other exception: in a host, an invariant, a client or a judge
    cut short                  the run was asked to end there
    ok                         nothing of that

An error says nothing about the rules that were looked at. It ends its run as a violation does, and
never the sweep: it is told with the seed and with the line that shows it again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from jepsen_like.sim.time.virtual_time import EventsSpent
from jepsen_like.sim.violation import BrokenRule

__all__ = ["ANY_ERROR", "ERROR", "Ending", "described", "ending_of", "error_ending", "raised_in"]

ERROR = "error"
# A core that calls sys.exit ends its run too, but not Ctrl-C.
ANY_ERROR = (Exception, SystemExit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    kind: str
    rule: str = ""  # the invariant, the bound, the cause, or the type of the exception
    detail: str = ""


def ending_of(play: Callable[[], object], *, is_cut: bool = False) -> Ending:
    """Play it to its end. `is_cut`: it may use up its events, since it was told how many."""
    try:
        play()
    except BrokenRule as broken:
        return Ending(kind=broken.kind, rule=broken.rule, detail=broken.detail)
    except EventsSpent as spent:
        if is_cut:
            return Ending(kind="cut short")
        return Ending(kind="liveness", rule="events", detail=f"more than {spent} events")
    except ANY_ERROR as error:
        return error_ending(error)
    return Ending(kind="ok")


def error_ending(error: BaseException) -> Ending:
    return Ending(kind=ERROR, rule=type(error).__name__, detail=described(error))


def described(error: BaseException) -> str:
    """What it says and where it was raised: a sweep keeps no traceback."""
    frame = _innermost(error.__traceback__)
    if frame is None:
        return str(error)
    code = frame.tb_frame.f_code
    return f"{error} ({raised_in(error)}:{frame.tb_lineno}, {code.co_qualname})".strip()


def raised_in(error: BaseException) -> str:
    """The module, by name."""
    frame = _innermost(error.__traceback__)
    return "" if frame is None else str(frame.tb_frame.f_globals.get("__name__", ""))


def _innermost(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback
