"""`quorumlab chaos sim`: one seed with its trace, or a sweep over many.

    quorumlab chaos sim --seed 7 --trace short
    quorumlab chaos sim --sweep 20000
    quorumlab chaos sim --sweep 500 --plant votes_twice
    quorumlab chaos sim --catches
    quorumlab chaos sim --clients --sweep 500
    quorumlab chaos sim --cluster --sweep 1000
    quorumlab chaos sim --cluster --having consumers,newer-metadata --sweep 100

Without `--cluster` the metadata quorum alone is simulated; with `--clients` nothing is judged but
what its clients see. Prints the line that replays a failure.
Exit codes: 0 nothing violated, 1 an exception in the simulator, 2 usage, 4 an invariant or a bound
violated, 5 a sweep that proves nothing because some kind of fault never fired in it, 130 a sweep
that Ctrl-C has ended: what it came to until then is printed.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import SimpleNamespace

from jepsen_like.planted.every_bug import (
    CLUSTER_PLANTS,
    CLUSTER_SCHEDULED,
    CLUSTER_SURVIVORS,
    PLANTS,
    SURVIVORS,
)
from jepsen_like.planted.planting import Plants
from jepsen_like.sim.assemblies.cluster.cluster_options import CLUSTER_FIRING_KINDS, EXTRAS
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.assemblies.quorum.appending_clients import run_with_clients
from jepsen_like.sim.assemblies.quorum.quorum_options import FIRING_KINDS
from jepsen_like.sim.assemblies.quorum.simulation import Outcome, run
from jepsen_like.sim.runs.sweep import Run, SweepResult, commit_of_code, run_seed, sweep
from jepsen_like.sim.time.ending import ERROR
from jepsen_like.sim.world.tracing import Tracer

__all__ = ["CLUSTER", "QUORUM", "Progress", "describe_failure", "run_sim", "swept_here"]

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_VIOLATED = 4
EXIT_UNKNOWN = 5
EXIT_INTERRUPTED = 130
_SEEDS_TO_JUDGE_FAULTS = 200  # fewer seeds need not have drawn every kind of fault
_FAILURES_SHOWN = 10
_KINDS = {"safety": "SAFETY", "liveness": "LIVENESS", "crash": "CRASH", ERROR: "ERROR"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What is simulated: how to run a seed of it, its bugs to plant, its kinds of faults."""

    flag: str
    run: Callable[..., Outcome]
    plants: Plants
    others: Plants  # that are not found at random
    kinds: tuple[str, ...]

    @property
    def all_plants(self) -> Plants:
        return {**self.plants, **self.others}


QUORUM = Simulated(flag="", run=run, plants=PLANTS, others=SURVIVORS, kinds=FIRING_KINDS)
CLIENTS = Simulated(
    flag=" --clients",
    run=run_with_clients,
    plants={},
    others={**PLANTS, **SURVIVORS},
    kinds=FIRING_KINDS,
)
CLUSTER = Simulated(
    flag=" --cluster",
    run=run_cluster,
    plants=CLUSTER_PLANTS,
    others={**CLUSTER_SCHEDULED, **CLUSTER_SURVIVORS},
    kinds=CLUSTER_FIRING_KINDS,
)


Progress = Callable[[SweepResult], None]
Sweep = Callable[[Sequence[int], Run, Progress | None], SweepResult]  # of what was parsed
Say = Callable[[str], None]  # some lines, for people or as JSON


def run_sim(args: SimpleNamespace, sweep_seeds: Sweep | None = None, say: Say = print) -> int:
    """Do what was parsed; returns the exit code. Sweeps run here, or as `sweep_seeds` does it."""
    wanted = frozenset((args.having or "").replace("-", " ").split(",")) - {""}
    if problem := _not_had(args, wanted):
        return _refuse(f"--having {args.having}: {problem}")
    simulated = CLUSTER if args.cluster else CLIENTS if args.clients else QUORUM
    if wanted:
        run_wanted = partial(run_cluster, wants=wanted)
        simulated = replace(CLUSTER, flag=f" --cluster --having {args.having}", run=run_wanted)
    return _run(simulated, args, sweep_seeds or swept_here(args), say)


def _not_had(args: SimpleNamespace, wanted: frozenset[str]) -> str:
    """Why runs cannot have that; empty if they can."""
    if wanted and not args.cluster:
        return "only whole clusters have that: add --cluster"
    known = ", ".join(name.replace(" ", "-") for name in EXTRAS)
    return "" if wanted <= EXTRAS.keys() else f"there are {known}"


def _run(simulated: Simulated, args: SimpleNamespace, sweep_seeds: Sweep, say: Say) -> int:
    known = simulated.all_plants
    if args.plants:
        for name, plant in sorted(known.items()):
            say(f"{name:34} {plant.seeds_max or '-':>4}  {plant.breaks}")
        return EXIT_OK
    planted = [name for name in (args.plant or "").split(",") if name]
    unknown = [name for name in planted if name not in known]
    if unknown:
        return _refuse(f"--plant {','.join(unknown)}: there is no such bug; --plants lists them")
    if args.catches and not simulated.plants:
        return _refuse(
            f"{simulated.flag.strip()} --catches: no bug has a bound by what clients see"
        )
    if args.catches:
        unbounded = [name for name in planted if name not in simulated.plants]
        if unbounded:
            return _refuse(
                f"--plant {','.join(unbounded)}: has no bound, it is not found at random"
            )
        return _run_catches(simulated, args, planted or sorted(simulated.plants), say)
    if args.sweep is not None and args.sweep < 1:
        return _refuse(f"--sweep {args.sweep}: at least one seed")
    if args.sweep is None:
        return _run_one(simulated, args, say)
    return _run_sweep(simulated, args, sweep_seeds, say)


def swept_here(args: SimpleNamespace) -> Sweep:
    """On processes of this machine."""

    def swept(seeds: Sequence[int], run: Run, progress: Progress | None) -> SweepResult:
        return sweep(seeds, args.plant, args.processes, progress, run=run)

    return swept


def _refuse(why: str) -> int:
    print(f"quorumlab: {why}", file=sys.stderr)
    return EXIT_USAGE


def _run_one(simulated: Simulated, args: SimpleNamespace, say: Say) -> int:
    seed = 0 if args.seed is None else args.seed
    tracer = None if args.trace is None else Tracer(say, full=args.trace == "full")
    outcome = run_seed(
        simulated.run, seed, plant=args.plant, until_event=args.until_event, tracer=tracer
    )
    if args.format == "json":
        say(json.dumps(_outcome_as_json(outcome)))
    elif outcome.kind in _KINDS:
        say(describe_failure(outcome, args.plant, simulated.flag))
    else:
        say(_describe_run(outcome))
    return _exit_code([outcome] if outcome.kind in _KINDS else [])


def _exit_code(failures: Sequence[Outcome]) -> int:
    """A broken rule outweighs everything. An exception breaks none: its run proves nothing."""
    if any(outcome.kind != ERROR for outcome in failures):
        return EXIT_VIOLATED
    return EXIT_ERROR if failures else EXIT_OK


def _run_sweep(simulated: Simulated, args: SimpleNamespace, sweep_seeds: Sweep, say: Say) -> int:
    seeds = range(args.first, args.first + args.sweep)
    progress = _progress if sys.stderr.isatty() else None
    result = sweep_seeds(seeds, simulated.run, progress)
    if progress is not None:
        print(file=sys.stderr)
    say(json.dumps(_as_json(result)) if args.format == "json" else _describe_sweep(result))
    for outcome in result.failures[:_FAILURES_SHOWN]:
        say(describe_failure(outcome, args.plant, simulated.flag))
    if result.was_interrupted:
        left = f"--sweep {args.sweep - result.seeds} --first {args.first + result.seeds}"
        print(f"quorumlab: interrupted: {left} goes on with the other seeds", file=sys.stderr)
    if result.failures:
        return _exit_code(result.failures)
    if result.was_interrupted:
        return EXIT_INTERRUPTED
    never_fired = result.never_fired(simulated.kinds)
    if never_fired and result.seeds >= _SEEDS_TO_JUDGE_FAULTS:
        say(f"proves nothing: never fired: {', '.join(never_fired)}")
        return EXIT_UNKNOWN
    return EXIT_OK


def _run_catches(
    simulated: Simulated, args: SimpleNamespace, planted: Sequence[str], say: Say
) -> int:
    """Each planted bug on its own seeds, from `--first` on, until it is found."""
    missed = 0
    errors: list[Outcome] = []
    say(f"{'plant':34} {'bound':>5} {'found':>5}  by")
    for name in planted:
        plant = simulated.plants[name]
        seeds = range(args.first, args.first + plant.seeds_max)
        result = sweep(
            seeds, plant=name, processes=args.processes, failures_max=1, run=simulated.run
        )
        if result.was_interrupted:
            return EXIT_INTERRUPTED
        found = result.convicted[0] if result.convicted else None
        missed += found is None
        place, by = ("-", "MISSED") if found is None else (found.seed - args.first + 1, found.rule)
        say(f"{name:34} {plant.seeds_max:5} {place:>5}  {by}")
        for outcome in result.failures:
            if outcome.kind == ERROR:
                errors.append(outcome)
                say(describe_failure(outcome, name, simulated.flag))
    return EXIT_VIOLATED if missed else _exit_code(errors)


def describe_failure(outcome: Outcome, plant: str | None = None, flag: str = "") -> str:
    """What was violated, where, and the command that shows it again."""
    planted = "" if plant is None else f" --plant {plant}"
    until = f" --until-event {outcome.event}" if outcome.event else ""
    return (
        f"{_KINDS[outcome.kind]} {outcome.rule}: {outcome.detail}\n"
        f"seed={outcome.seed} commit={commit_of_code()} event={outcome.event}"
        f" t={outcome.now_ms}ms mode={flag.removeprefix(' --') or 'quorum'} voters={outcome.voters}"
        f" observers={outcome.observers}\n"
        f"repro:   quorumlab chaos sim{flag} --seed {outcome.seed}{planted}{until} --trace full"
    )


def _describe_run(outcome: Outcome) -> str:
    fired = " ".join(f"{kind}={count}" for kind, count in sorted(outcome.faults.items()) if count)
    return (
        f"{outcome.kind} seed={outcome.seed} events={outcome.event} t={outcome.now_ms}ms"
        f" voters={outcome.voters} observers={outcome.observers} elections={outcome.elections}"
        f" committed={outcome.committed} digest={outcome.digest}\nfaults: {fired or 'none'}"
    )


def _describe_sweep(result: SweepResult) -> str:
    fired = "\n".join(f"  {kind:18} {count:>12,}" for kind, count in sorted(result.faults.items()))
    return (
        f"{result.seeds:,} seeds in {result.seconds:.1f} s ({result.seeds_per_second:.1f} a"
        f" second): {len(result.failures)} failed\n"
        f"{3600 * result.seeds_per_second:,.0f} seeds an hour,"
        f" {result.virtual_seconds_per_second:.1f} virtual seconds a second\n"
        f"{result.events:,} events ({result.events_per_second:,.0f} a second),"
        f" {result.virtual_ms / 3_600_000:.2f} virtual hours,"
        f" {result.elections:,} elections, {result.committed:,} records committed\n"
        f"faults that fired:\n{fired}"
    )


def _as_json(result: SweepResult) -> dict[str, object]:
    return {
        "seeds": result.seeds,
        "seconds": round(result.seconds, 3),
        "seeds_per_hour": round(3600 * result.seeds_per_second),
        "events_per_second": round(result.events_per_second),
        "virtual_seconds_per_second": round(result.virtual_seconds_per_second, 1),
        "events": result.events,
        "virtual_ms": result.virtual_ms,
        "elections": result.elections,
        "committed": result.committed,
        "faults": dict(sorted(result.faults.items())),
        "transitions": dict(sorted(result.coverage.transitions.items())),
        "meetings": dict(sorted(result.coverage.meetings.items())),
        "traces": dict(sorted(result.coverage.traces.items())),
        "failures": [_outcome_as_json(outcome) for outcome in result.failures],
    }


def _outcome_as_json(outcome: Outcome) -> dict[str, object]:
    """`asdict` would make a counter of pairs out of the counter of faults."""
    return asdict(replace(outcome, faults={})) | {"faults": dict(sorted(outcome.faults.items()))}


def _progress(result: SweepResult) -> None:
    print(
        f"\r{result.seeds} seeds, {result.seeds_per_second:.1f} a second,"
        f" {len(result.failures)} failed ",
        end="",
        file=sys.stderr,
        flush=True,
    )
