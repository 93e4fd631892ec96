"""Trials of a mutant that no unit test has noticed: seeds under invariants, then histories.

A trial returns what it has found wrong, or nothing. An exception counts as found.
"""

from collections.abc import Callable, Mapping, Sequence

from jepsen_like.checkers.verdict import Outcome
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.assemblies.quorum import simulation
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.workload_run import run_plan
from jepsen_like.sim.violation import Violation
from tests.agreement.agreeing import compared
from tests.agreement.models import MODELS
from tests.sim.storage_bench import run_storage
from tests.spark.histories import random_log
from tests.spark.in_pieces import judged_both_ways

__all__ = ["HISTORIES", "SECONDS_MAX", "SEEDS", "Trial", "first_found"]

Trial = Callable[[int], str]
SECONDS_MAX = 20.0  # of processor time: ten times what the longest takes
_PLANS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("log", ("kill", "partition")),
    ("register", ("isolate-controller",)),
    ("cas-register", ("power-loss:majority", "kill")),
    ("set", ("kill",)),
    ("kafka", ("kill", "partition")),
    ("log", ("pause", "drop-rpc")),
)


def first_found(trial: Trial, numbers: Sequence[int], begun: Callable[[], None]) -> str:
    """`begun` is called before each trial."""
    for number in numbers:
        begun()
        try:
            found = trial(number)
        except Exception as error:  # noqa: BLE001 - whatever a mutant does
            found = f"{type(error).__name__}: {error}"
        if found:
            return f"{number}: {found}"[:160]
    return ""


def _quorum(seed: int) -> str:
    return _told(simulation.run(seed))


def _on_files(seed: int) -> str:
    """Both heights: storage alone, and below a quorum."""
    try:
        run_storage(seed)
    except Violation as violation:
        return str(violation)
    run = simulation.Simulation(seed, on_files=True)
    return _told(run.outcome_of(run.run))


def _cluster(seed: int) -> str:
    return _told(run_cluster(seed))


def _told(outcome: simulation.Outcome) -> str:
    return "" if outcome.kind == "ok" else f"{outcome.rule} {outcome.detail}"


def _simulated(number: int) -> str:
    workload, faults = _PLANS[number]
    outcome = run_plan(Plan(seed=3, workload=workload, faults=faults, seconds=4))
    if outcome.broken:
        return f"{workload}: {outcome.broken}"
    found = outcome.verdict.outcome
    return "" if found is Outcome.VALID else f"{workload}: {found}"


def _agreeing(number: int) -> str:
    """Twenty histories of each model, other ones than those of the tests."""
    numbers = range(10_000 + 20 * number, 10_020 + 20 * number)
    wrong = [
        each for name, agreed in MODELS.items() for each in compared(name, agreed, numbers).wrong
    ]
    return wrong[0] if wrong else ""


def _in_pieces(number: int) -> str:
    history = random_log(100 + number)
    for size in (1, 2, 7):
        found, expected = judged_both_ways(history, size)
        if found != expected:
            return f"in pieces of {size}: {found}"
    return ""


SEEDS: Mapping[str, tuple[Trial, Sequence[int]]] = {
    "": (_quorum, ()),
    "quorum": (_quorum, range(30)),
    "files": (_on_files, range(30)),
    "cluster": (_cluster, range(20)),
}
HISTORIES: Mapping[str, tuple[Trial, Sequence[int]]] = {
    "simulated": (_simulated, range(len(_PLANS))),
    "judged": (_agreeing, range(5)),
    "pieces": (_in_pieces, range(20)),
}
