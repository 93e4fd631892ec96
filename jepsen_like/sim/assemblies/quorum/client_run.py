"""One run of a simulated quorum as its clients see it: judged by their history, and nothing else.

A seed gives the same run as in `simulation.run` for as long as no invariant is violated. That one
ends there, and this one goes on: does a broken rule ever harm a client?
"""

from contextlib import suppress
from functools import partial

from jepsen_like.checkers.judges import judge
from jepsen_like.histories.history import Header, History, Kind, Op
from jepsen_like.planted.every_bug import planted
from jepsen_like.sim.assemblies.quorum.appending_clients import Clients
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.simulation import Outcome, Simulation
from jepsen_like.sim.open_history import OpenHistory
from jepsen_like.sim.time.ending import Ending
from jepsen_like.sim.violation import Stuck
from jepsen_like.sim.world.observer import Observer

__all__ = ["run_with_clients"]

_ANSWER_US = 2_000_000  # for the last question


def run_with_clients(
    seed: int,
    *,
    options: Options | None = None,
    plant: str | None = None,
    until_event: int | None = None,
    tracer: Observer | None = None,
) -> Outcome:
    """Run one seed, on the shipped rules or with the planted bug `plant`.

    What the judge finds comes first; without a finding the outcome says how the run ended.
    """
    simulation = Simulation(seed, options, tracer, is_judged=False)
    history = OpenHistory()
    clients = Clients(history, simulation.quorum)
    with planted(plant):
        ended = simulation.outcome_of(partial(_play, simulation, clients), until_event)
    history.end()
    header = Header(workload="log", seed=seed, design="quorum")
    verdict = judge(History(header=header, ops=tuple(history.ops)))
    if verdict.findings:
        finding = verdict.findings[0]
        detail = f"{finding.object}: {finding.detail}"
        return simulation.outcome(Ending(kind="safety", rule=finding.rule, detail=detail))
    if ended.kind == "ok" and not any(_is_whole(op) for op in history.ops):
        detail = "nobody answers the last question"
        return simulation.outcome(Ending(kind="liveness", rule="not-readable", detail=detail))
    return ended


def _is_whole(op: Op) -> bool:
    """Does it tell all that there is?"""
    return op.kind is Kind.OK and bool(op.extra.get("caught_up"))


def _play(simulation: Simulation, clients: Clients, events_max: int) -> None:
    """All phases, as far as they come, and the last question.

    A bound that is missed ends the phases, and is no finding: clients know nothing of bounds.
    """
    world = simulation.world
    with suppress(Stuck), world.judging:
        simulation.run(events_max)
    clients.ask_leaders()
    world.run_until(world.now_us + _ANSWER_US, events_max=events_max)
