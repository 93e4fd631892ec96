"""`quorumlab chaos sim`, `replay` and `shrink`: runs on virtual time, each a function of its plan.

Exit codes: 0 valid, 1 an exception in the simulator, 4 violated, 5 void or undecided.
"""

import gc
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.checkers.verdict import Outcome
from jepsen_like.faults.kinds import KINDS, kind_and_role
from jepsen_like.histories.history import Kind
from jepsen_like.planted.every_bug import EVERY_PLANT
from jepsen_like.real.runs.outcome import admitted_by
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan
from jepsen_like.sim.chaos.shrinking import rules_of, shrink
from jepsen_like.sim.chaos.workload_run import failed, run_plan
from jepsen_like.sim.runs.workers import Died, mapped
from jepsen_like.workloads.registry import WORKLOADS, why_no_workload
from quorum.raftos.engines import ENGINES, NATIVE, ONLY_IN_PROCESSES
from quorumlab.arguments import Failed, UsageError
from quorumlab.folding import fold_command
from quorumlab.output import complain, say, say_folded, say_marked
from quorumlab.simulated_runs import (
    PAGE,
    evidence_in,
    kept_plan,
    refuse_other,
    replay_line,
    say_timeline,
    write_run,
)
from quorumlab.verbs.chaos_options import FAULTS, SIM_DEFAULTS, ZK_FAULTS
from quorumlab.verbs.chaos_sweep import (
    EXIT_ERROR,
    is_on_spark,
    run_plans_on_spark,
    run_sweep,
    sum_up,
)
from quorumlab.verbs.common import in_bounds, one_of, take_defaults
from wire.zk.designs import DESIGNS

__all__ = ["run_replay", "run_shrink", "run_sim"]

_FINDINGS_SHOWN = 5
_ONLY_ON_PROCESSES = ("admin", "partition-epoch")
_SIMULATED = tuple(name for name in sorted(WORKLOADS) if name not in _ONLY_ON_PROCESSES)
_OF_WORKLOADS = ("seeds", "out", "faults", "no_idempotence", "invariants")
_OF_SWEEPS = ("cluster", "clients", "plants", "catches", "trace", "until_event")
_OF_PLANS = (*SIM_DEFAULTS, "workload", "faults", "seed", "plant")
_SEEDS_MAX = 1_000_000
_NODES_MAX = 9
_INTERRUPTED = 130


# --- sim -------------------------------------------------------------------------------------


def _refuse_engine(args: SimpleNamespace) -> None:
    one_of(ENGINES, "--engine", args.engine)
    if args.engine != NATIVE:
        raise UsageError(f"--engine {args.engine}: {ONLY_IN_PROCESSES}")


def run_sim(args: SimpleNamespace) -> int:
    take_defaults(args, SIM_DEFAULTS)
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
        return run_sweep(args)
    seeds = _seeds(args)
    plans = [_plan(args, seed) for seed in seeds]
    if is_on_spark(args):
        if args.out is not None:
            raise UsageError("--out keeps histories, which stay where Spark runs the seeds")
        return run_plans_on_spark(plans[0], seeds, args)
    for seed in seeds if args.out is not None else ():
        refuse_other(args.out / f"seed-{seed}")
    codes: Counter[int] = Counter()
    try:
        for outcome in _all(plans, args.processes):
            _say_line(outcome)
            _tell_findings(outcome)
            if args.out is not None:
                _keep(args.out / f"seed-{outcome.plan.seed}", outcome)
            codes[_exit_code(outcome)] += 1
    except KeyboardInterrupt:
        done, left = codes.total(), seeds[codes.total() :]
        rest = f": --seeds {left[0]}..{left[-1]} makes the others" if left else ""
        complain(f"interrupted after {done} of {len(seeds)} runs{rest}")
        return sum_up(codes) or _INTERRUPTED
    return sum_up(codes)


def _refuse_what_would_be_ignored(args: SimpleNamespace) -> None:
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
        gc.freeze()  # the modules are here for ever
        yield from map(run_plan, plans)
        return
    with closing(mapped(run_plan, plans, processes)) as outcomes:
        for plan, outcome in outcomes:
            yield failed(plan, outcome.ending) if isinstance(outcome, Died) else outcome


def _seeds(args: SimpleNamespace) -> Sequence[int]:
    if args.seeds is None:
        return [args.seed or 0]
    first, dots, last = args.seeds.partition("..")
    if not dots or not first.isdigit() or not last.isdigit():
        raise UsageError(f"--seeds {args.seeds}: write 0..9")
    seeds = range(int(first), int(last) + 1)
    if not 0 < len(seeds) <= _SEEDS_MAX:
        raise UsageError(f"--seeds {args.seeds}: there are {len(seeds)} of them")
    return seeds


def _plan(args: SimpleNamespace, seed: int) -> Plan:
    one_of(("quorum", *DESIGNS), "--design", args.design)
    why = why_no_workload(DESIGNS[args.design], args.workload) if args.design in DESIGNS else ""
    if why:
        raise UsageError(f"--workload {args.workload}: not with --design {args.design}: {why}")
    in_bounds(args, zookeepers=(1, _NODES_MAX))
    one_of(_SIMULATED, "--workload", args.workload)
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


def run_replay(args: SimpleNamespace) -> int:
    unset = (None, False)
    given = [name for name in _OF_PLANS if all(getattr(args, name) is not each for each in unset)]
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
    _say_line(outcome)
    _tell_findings(outcome)
    if args.out is not None:
        _keep(args.out, outcome)
    if expected is not None and outcome.digest != expected:
        raise Failed(f"its digest was {expected}: the code is another by now")
    return _exit_code(outcome)


def run_shrink(args: SimpleNamespace) -> int:
    plan, _ = kept_plan(args.directory)
    directory = args.out or args.directory / "shrunk"
    refuse_other(directory)
    outcome = run_plan(plan)
    _say_line(outcome)
    if not outcome.is_red:
        raise Failed("nothing is violated in it: there is nothing to keep while it shrinks")
    smallest = shrink(outcome, progress=lambda text: say(f"still fails: {text}", sys.stderr))
    _say_line(smallest)
    _tell_findings(smallest)
    _keep(directory, smallest)
    say_timeline(smallest.history, evidence_in(smallest), context=5)
    say_folded(f"kept in {directory}: {', '.join(sorted(rules_of(smallest)))}")
    return _exit_code(smallest)


def _keep(directory: Path, outcome: ChaosOutcome) -> None:
    write_run(directory, outcome)
    say(f"  page: {directory / PAGE}")


# --- what is told ----------------------------------------------------------------------------


def _say_line(outcome: ChaosOutcome) -> None:
    verdict = _verdict(outcome)
    say_marked(_line(outcome, verdict), verdict, is_bad=outcome.is_red)


def _verdict(outcome: ChaosOutcome) -> str:
    if outcome.broken:
        return "error" if outcome.is_error else "broken"
    return outcome.verdict.outcome.value


def _line(outcome: ChaosOutcome, verdict: str) -> str:
    ended = Counter(op.kind for op in outcome.history.ops if isinstance(op.process, int))
    bitten = Counter(each.scheduled.fault.kind for each in outcome.fault_outcomes if each.proof.bit)
    faults = " ".join(f"{kind}={count}" for kind, count in sorted(bitten.items())) or "none"
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
        say_folded(f"  {outcome.broken}")
    for finding in outcome.verdict.findings[:_FINDINGS_SHOWN]:
        told = f"  {finding.rule} {finding.object}: {finding.detail}"
        say_marked(told, finding.rule, is_bad=True)
    more = len(outcome.verdict.findings) - _FINDINGS_SHOWN
    if more > 0:
        say(f"  and {more} findings more")
    if outcome.is_red and outcome.plan.schedule is None:
        say(fold_command(f"  repro: {replay_line(outcome.plan)}"))
    for rule, why in admitted_by(outcome.plan.design, outcome.verdict.findings).items():
        say_folded(f"  admitted: {rule}, by the document of {outcome.plan.design}: {why}")
    for reason in (outcome.verdict.reason, *outcome.void):
        if reason:
            say_folded(f"  proves nothing: {reason}")


def _exit_code(outcome: ChaosOutcome) -> int:
    if outcome.is_red:
        return EXIT_ERROR if outcome.is_error else Outcome.VIOLATED.exit_code
    return Outcome.UNDECIDED.exit_code if outcome.void else outcome.verdict.outcome.exit_code
