"""`quorumlab chaos sim`, `replay` and `shrink`: runs on virtual time.

    quorumlab chaos sim --workload log --faults kill,partition --seeds 0..19 --out runs
    quorumlab chaos sim --design zk-v3 --sweep 100
    quorumlab chaos sim --sweep 100000 --master spark://host:7077
    quorumlab chaos replay runs/seed-7
    quorumlab chaos shrink runs/seed-7

A run is a function of its plan. Many seeds are run on processes of this machine, or on Spark, and
each is judged where it is run: what comes back are verdicts, what was covered, and the seeds that
failed with the lines that replay them.

Exit codes: 0 valid, 1 an exception in the simulator, 4 violated, 5
void or undecided.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jepsen_like.checkers.verdict import Outcome
from jepsen_like.faults.kinds import KINDS, kind_and_role
from jepsen_like.histories.history import Kind
from jepsen_like.planted.every_bug import EVERY_PLANT
from jepsen_like.real.runs.outcome import admitted_by
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan
from jepsen_like.sim.chaos.shrinking import rules_of, shrink
from jepsen_like.sim.chaos.workload_run import failed, run_plan
from jepsen_like.sim.runs.command import run_sim as run_without_workload
from jepsen_like.sim.runs.sweep import Run, SweepResult, sweep
from jepsen_like.sim.runs.workers import Died, Lost, apart, died, mapped
from jepsen_like.sim.world.coverage import Coverage
from jepsen_like.workloads.registry import why_no_workload
from quorum.node.engines import ENGINES, NATIVE, ONLY_IN_PROCESSES
from quorumlab.arguments import Failed, UsageError
from quorumlab.interrupts import sigterm_as_ctrl_c
from quorumlab.output import Progress, say
from quorumlab.simulated_runs import (
    PAGE,
    evidence_in,
    kept_plan,
    refuse_other,
    replay_line,
    timeline_of,
    write_run,
)
from quorumlab.verbs.chaos_options import FAULTS, SIM_DEFAULTS, SIMULATED, ZK_FAULTS
from quorumlab.verbs.common import in_bounds, one_of, take_defaults
from spark.session import NotInTime, Settings, SparkUnavailable, session
from spark.sweeps import PlanResult, run_plans, sweep_seeds
from wire.zk.designs import DESIGNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_replay", "run_shrink", "run_sim"]

_FINDINGS_SHOWN = 5
_OF_WORKLOADS = ("seeds", "out", "faults", "no_idempotence", "invariants")
_OF_SWEEPS = ("cluster", "clients", "plants", "catches", "trace", "until_event")
_OF_PLANS = (*SIM_DEFAULTS, "workload", "faults", "seed", "plant")
_SEEDS_MAX = 1_000_000
_NODES_MAX = 9


# --- sim -------------------------------------------------------------------------------------


def _refuse_engine(args: argparse.Namespace) -> None:
    one_of(ENGINES, "--engine", args.engine)
    if args.engine != NATIVE:
        raise UsageError(f"--engine {args.engine}: {ONLY_IN_PROCESSES}")


def run_sim(args: argparse.Namespace) -> int:
    _refuse_engine(args)
    _refuse_what_would_be_ignored(args)
    if args.design != "quorum":
        # The same run that has clients judges what a design promises: `--sweep` is so many seeds
        # of it, with invariants.
        args.workload = args.workload or "log"
        if args.sweep is not None:
            first = args.first or 0
            args.seeds = f"{first}..{first + args.sweep - 1}"
            args.invariants = True
    if args.workload is None:
        return _run_sweep(args)
    seeds = _seeds(args)
    plans = [_plan(args, seed) for seed in seeds]
    if args.master is not None:
        if args.out is not None:
            raise UsageError("--out keeps histories, which stay where --master runs the seeds")
        return _run_plans_on_spark(plans, args)
    for seed in seeds if args.out is not None else ():
        refuse_other(args.out / f"seed-{seed}")
    outcomes = []
    for outcome in _all(plans, args.processes):
        say(_line(outcome))
        _tell_findings(outcome)
        if args.out is not None:
            _keep(args.out / f"seed-{outcome.plan.seed}", outcome)
        outcomes.append(outcome)
    return _sum_up(Counter(map(_exit_code, outcomes)))


def _refuse_what_would_be_ignored(args: argparse.Namespace) -> None:
    has_design = args.design != "quorum"
    if args.workload is None and not has_design:
        given = [name for name in _OF_WORKLOADS if getattr(args, name) not in (None, False)]
        if given:
            raise UsageError(f"{_option(given[0])} needs --workload; without it there is --sweep")
        return
    others = _OF_SWEEPS if has_design else (*_OF_SWEEPS, "sweep")
    given = [name for name in others if getattr(args, name) not in (None, False)]
    if given:
        why = f"--design {args.design}" if has_design else "--workload"
        instead = ", which has --seeds A..B" if given[0] == "sweep" else ""
        raise UsageError(f"{_option(given[0])} is not for runs with {why}{instead}: leave it out")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _all(plans: Sequence[Plan], processes: int) -> Iterator[ChaosOutcome]:
    """Yields outcomes in the order of the plans."""
    if len(plans) == 1 or processes == 1:
        yield from map(run_plan, plans)
        return
    with closing(mapped(run_plan, plans, processes)) as outcomes:
        for plan, outcome in outcomes:
            if isinstance(outcome, Lost):
                # The process died that had this run or others to do: now this one is alone in one.
                (again,) = apart(run_plan, [plan])
                yield failed(plan, died(again)) if isinstance(again, Died) else again
            else:
                yield outcome


def _seeds(args: argparse.Namespace) -> Sequence[int]:
    if args.seeds is None:
        return [args.seed or 0]
    first, dots, last = args.seeds.partition("..")
    if not dots or not first.isdigit() or not last.isdigit():
        raise UsageError(f"--seeds {args.seeds}: write 0..9")
    seeds = range(int(first), int(last) + 1)
    if not 0 < len(seeds) <= _SEEDS_MAX:
        raise UsageError(f"--seeds {args.seeds}: there are {len(seeds)} of them")
    return seeds


def _plan(args: argparse.Namespace, seed: int) -> Plan:
    one_of(("quorum", *DESIGNS), "--design", args.design)
    why = why_no_workload(DESIGNS[args.design], args.workload) if args.design in DESIGNS else ""
    if why:
        raise UsageError(f"--workload {args.workload}: not with --design {args.design}: {why}")
    in_bounds(args, zookeepers=(1, _NODES_MAX))
    one_of(SIMULATED, "--workload", args.workload)
    in_bounds(args, seconds=(1, 3600))
    unknown = [name for name in (args.plant or "").split(",") if name and name not in EVERY_PLANT]
    if unknown:
        raise UsageError(
            f"--plant {unknown[0]}: `quorumlab chaos sim --plants` lists what there is"
        )
    return Plan(
        seed=seed,
        design=args.design,
        zookeepers=args.zookeepers,
        workload=args.workload,
        faults=_faults(args.faults or (FAULTS if args.design == "quorum" else ZK_FAULTS)),
        seconds=args.seconds,
        idempotent=not args.no_idempotence,
        plants=args.plant,
        judges_invariants=args.invariants,
    )


def _faults(named: str) -> tuple[str, ...]:
    if named == "none":
        return ()
    wanted = tuple(name.strip() for name in named.split(",") if name.strip())
    try:
        reasons = {name: KINDS[kind_and_role(name)[0]].not_simulated for name in wanted}
    except ValueError as error:
        raise UsageError(f"--faults: {error}") from error
    for name in filter(reasons.get, wanted):
        raise UsageError(f"--faults {name}: {reasons[name]}")
    return wanted


# --- replay and shrink -----------------------------------------------------------------------


def run_replay(args: argparse.Namespace) -> int:
    given = [name for name in _OF_PLANS if getattr(args, name) is not None]
    if args.directory is not None and given:
        raise UsageError(
            f"{_option(given[0])}: {args.directory} has the plan of its run: leave the option out, "
            "or the directory"
        )
    take_defaults(args, SIM_DEFAULTS)
    _refuse_engine(args)
    expected = None
    if args.directory is not None:
        plan, expected = kept_plan(args.directory)
    elif args.seed is not None:
        args.workload = args.workload or "log"
        plan = _plan(args, args.seed)
    else:
        raise UsageError("name the directory of a run, or --seed N")
    if args.out is not None:
        refuse_other(args.out)
    outcome = run_plan(plan)
    say(_line(outcome))
    _tell_findings(outcome)
    if args.out is not None:
        _keep(args.out, outcome)
    if expected is not None and outcome.digest != expected:
        raise Failed(f"its digest was {expected}: the code is another by now")
    return _exit_code(outcome)


def run_shrink(args: argparse.Namespace) -> int:
    plan, _ = kept_plan(args.directory)
    directory = args.out or args.directory / "shrunk"
    refuse_other(directory)
    outcome = run_plan(plan)
    say(_line(outcome))
    if not outcome.is_red:
        raise Failed("nothing is violated in it: there is nothing to keep while it shrinks")
    smallest = shrink(outcome, progress=lambda text: say(f"still fails: {text}", sys.stderr))
    say(_line(smallest))
    _tell_findings(smallest)
    _keep(directory, smallest)
    for line in timeline_of(smallest.history, evidence_in(smallest), context=5):
        say(line)
    say(f"kept in {directory}: {', '.join(sorted(rules_of(smallest)))}")
    return _exit_code(smallest)


def _keep(directory: Path, outcome: ChaosOutcome) -> None:
    write_run(directory, outcome)
    say(f"  page: {directory / PAGE}")


# --- what is told ----------------------------------------------------------------------------


def _line(outcome: ChaosOutcome) -> str:
    ended = Counter(op.kind for op in outcome.history.ops if isinstance(op.process, int))
    bitten = Counter(each.scheduled.fault.kind for each in outcome.fault_outcomes if each.proof.bit)
    faults = " ".join(f"{kind}={count}" for kind, count in sorted(bitten.items())) or "none"
    verdict = outcome.verdict.outcome.value
    if outcome.broken:
        verdict = "error" if outcome.is_error else "broken"
    is_void = " void" if outcome.void else ""
    return (
        f"seed {outcome.plan.seed}: {verdict}{is_void} | ok {ended[Kind.OK]} fail"
        f" {ended[Kind.FAIL]} info {ended[Kind.INFO]} | faults that bit: {faults} |"
        f" {outcome.now_ms / 1000:.1f} s, {outcome.events} events | digest {outcome.digest}"
    )


def _tell_findings(outcome: ChaosOutcome) -> None:
    if outcome.plan.plants:
        say(f"  planted: {outcome.plan.plants}")
    if outcome.broken:
        say(f"  {outcome.broken}")
    for finding in outcome.verdict.findings[:_FINDINGS_SHOWN]:
        say(f"  {finding.rule} {finding.object}: {finding.detail}")
    more = len(outcome.verdict.findings) - _FINDINGS_SHOWN
    if more > 0:
        say(f"  and {more} findings more")
    if outcome.is_red and outcome.plan.schedule is None:
        say(f"  repro: {replay_line(outcome.plan)}")
    for rule, why in admitted_by(outcome.plan.design, outcome.verdict.findings).items():
        say(f"  admitted: {rule}, by the document of {outcome.plan.design}: {why}")
    for reason in (outcome.verdict.reason, *outcome.void):
        if reason:
            say(f"  proves nothing: {reason}")


def _exit_code(outcome: ChaosOutcome) -> int:
    if outcome.is_red:
        return EXIT_ERROR if outcome.is_error else Outcome.VIOLATED.exit_code
    return Outcome.UNDECIDED.exit_code if outcome.void else outcome.verdict.outcome.exit_code


# --- many seeds -----------------------------------------------------------------------------


_ROOT = Path(__file__).resolve().parent.parent.parent
EXIT_ERROR = 1
_FAILURES_SHOWN = 10
_TRACES = re.compile(r"\btrace\(\s*\"([a-z_-]+)\"|Trace\(event=\"([a-z_-]+)\"")
_FOLDERS = {False: ("quorum",), True: ("quorum", "controller", "broker")}  # of a cluster: all


def _run_sweep(args: argparse.Namespace) -> int:
    """Runs `--sweep`, and all else that `chaos sim` does without a workload."""
    results: list[SweepResult] = []

    def sweeping(
        seeds: Sequence[int],
        *,
        plant: str | None,
        processes: int,
        progress: Callable[[SweepResult], None] | None,
        run: Run,
    ) -> SweepResult:
        if args.master is None:
            result = sweep(seeds, plant=plant, processes=processes, progress=progress, run=run)
        else:
            result = _swept_on_spark(seeds, args, plant=plant, run=run)
        results.append(result)
        return result

    with sigterm_as_ctrl_c():
        code = run_without_workload(args, sweeping)
    for result in results:
        if args.format == "text":
            for line in _covered(result.coverage, _FOLDERS[args.cluster]):
                say(line)
    return code


def _run_plans_on_spark(plans: Sequence[Plan], args: argparse.Namespace) -> int:
    """Runs of a workload, one a plan; the exit code is that of the worst of them."""
    with _on_spark(args) as (spark, settings, progress):
        results = run_plans(spark, plans, settings, progress=progress)
    bitten: Counter[str] = Counter()
    for result in results:
        bitten.update(result.bitten)
    say("faults that bit: " + (_counted(bitten) or "none"))
    red = [each for each in results if each.outcome is Outcome.VIOLATED]
    errors = [each for each in results if each.is_error]
    for result in [*red[:_FAILURES_SHOWN], *errors[:_FAILURES_SHOWN]]:
        for line in _failure(result):
            say(line)
    return _sum_up(Counter(map(_code_of_result, results)))


def _code_of_result(result: PlanResult) -> int:
    if result.is_error and result.outcome is not Outcome.VIOLATED:
        return EXIT_ERROR
    is_void = result.void and result.outcome is not Outcome.VIOLATED
    return (Outcome.UNDECIDED if is_void else result.outcome).exit_code


def _sum_up(codes: Counter[int]) -> int:
    """The exit code of several runs: a violation outweighs everything, then comes an error, and
    doubt outweighs validity."""
    order = (Outcome.VIOLATED.exit_code, EXIT_ERROR, Outcome.UNDECIDED.exit_code)
    red, errors, doubted = (codes[code] for code in order)
    if codes.total() > 1:
        failed = f", {errors} ended by an exception" if errors else ""
        told = f"{red} violated, {doubted} void or undecided, {codes[0]} valid{failed}"
        say(f"{codes.total():,} runs: {told}")
    return next((code for code in order if codes[code]), 0)


def _swept_on_spark(
    seeds: Sequence[int], args: argparse.Namespace, *, plant: str | None, run: Run
) -> SweepResult:
    with _on_spark(args) as (spark, settings, progress):
        began = time.monotonic()
        result = sweep_seeds(spark, seeds, settings, run=run, plant=plant, progress=progress)
        result.seconds = time.monotonic() - began
        return result


@contextmanager
def _on_spark(
    args: argparse.Namespace,
) -> "Iterator[tuple[SparkSession, Settings, Callable[[float], None]]]":
    line = Progress()
    settings = Settings(master=args.master, seconds=args.timeout)
    line(f"starting Spark on {args.master}")
    try:
        with session(settings) as spark:
            yield spark, settings, lambda share: line(f"{share:.0%} of the seeds are done")
    except (NotInTime, SparkUnavailable) as error:
        raise Failed(str(error)) from error
    finally:
        line.done()


def _failure(result: PlanResult) -> Iterator[str]:
    kind = "error" if result.is_error else "violated"
    yield f"seed {result.plan.seed}: {kind}, digest {result.digest}"
    if result.broken:
        yield f"  {result.broken}"
    for finding in result.findings:
        yield f"  {finding.rule} {finding.object}: {finding.detail}"
    yield f"  repro: {replay_line(result.plan)}"


def _covered(coverage: Coverage, folders: Sequence[str]) -> Iterator[str]:
    unseen = ", ".join(coverage.never_seen())
    yield f"transitions never seen: {unseen or 'none'}"
    yield f"messages never met: {', '.join(coverage.never_met()) or 'none'}"
    silent = ", ".join(name for name in _known_traces(folders) if not coverage.traces[name])
    yield f"trace events never seen: {silent or 'none'}"


def _known_traces(folders: Sequence[str]) -> list[str]:
    """Finds all trace events that the code can emit, by reading the code."""
    sources = (path.read_text() for folder in folders for path in (_ROOT / folder).rglob("*.py"))
    found = (match for source in sources for match in _TRACES.findall(source))
    return sorted({first or second for first, second in found})


def _counted(counts: Counter[str]) -> str:
    return " ".join(f"{name}={count:,}" for name, count in sorted(counts.items()))
