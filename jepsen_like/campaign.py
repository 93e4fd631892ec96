"""Many runs over all kinds of faults: which ones, and the table of what came of them.

Runs take turns among the workloads and both clients. The kinds of each run are those whose pairs no
earlier run has had together, as far as the workload has somebody for them to strike. What is
planned follows from the seed alone, so that a campaign that was interrupted goes on as it began.
Kinds that need proxies between the nodes never meet those that need namespaces.

A void run stays in the table and is counted: none is repeated until it pleases. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from random import Random
from typing import Any

from jepsen_like.schedule import clash

__all__ = ["Planned", "plan_campaign", "report"]

KINDS_A_RUN = 4
_TRIES = 200  # sets of kinds that are drawn for a run, to take the one with most new pairs
_UNFIT: Mapping[str, tuple[str, ...]] = {
    # Requests that only brokers send, disks that only they fill: not for a quorum alone.
    "cas-register": (
        "hold-rpc",
        "drop-rpc",
        "duplicate-rpc",
        "reorder-rpc",
        "full-disk",
        "rolling-restart",
    ),
    # One replica may be enough there for an acknowledgement, and then one disk is enough to lose.
    "admin": ("power-loss", "fsync-error", "torn-write", "bit-flip"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    number: int  # from 1
    seed: int
    workload: str
    kinds: tuple[str, ...]
    arguments: tuple[str, ...] = ()  # beyond workload, faults, seconds and seed

    @property
    def directory(self) -> str:
        return f"{self.number:03d}-{self.workload}"


# The log most often: it has most to lose.
_TURNS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("log", ()),
    ("register", ()),
    ("log", ("--client", "aiokafka")),
    ("admin", ()),
    ("cas-register", ()),
    ("log", ("--no-idempotence",)),
    ("set", ()),
    ("observe", ()),
    ("partition-epoch", ()),
    ("kafka", ()),
)


def plan_campaign(*, runs: int, kinds: Sequence[str], seed: int) -> tuple[Planned, ...]:
    random = Random(seed)
    seen: Counter[tuple[str, str]] = Counter()
    planned = []
    for number in range(1, runs + 1):
        workload, arguments = _TURNS[(number - 1) % len(_TURNS)]
        possible = [kind for kind in kinds if kind not in _UNFIT.get(workload, ())]
        chosen = _chosen(random, possible, seen)
        seen.update(combinations(chosen, 2))
        planned.append(
            Planned(
                number=number,
                seed=seed * 1000 + number,
                workload=workload,
                kinds=chosen,
                arguments=arguments,
            )
        )
    return tuple(planned)


def _chosen(
    random: Random, kinds: Sequence[str], seen: Mapping[tuple[str, str], int]
) -> tuple[str, ...]:
    """Those that meet for the first time, as many as there are."""
    count = min(KINDS_A_RUN, len(kinds))
    drawn = [tuple(sorted(random.sample(kinds, count))) for _ in range(_TRIES)]
    possible = [each for each in drawn if clash(each) is None]
    return min(possible, key=lambda each: sum(seen[pair] for pair in combinations(each, 2)))


# --- the table -------------------------------------------------------------------------------

_COLUMNS = (
    "run",
    "workload",
    "seed",
    "faults that bit",
    "proven",
    "ok",
    "failed",
    "unknown",
    "ok/s with faults",
    "ok/s without",
    "elections",
    "leader elections",
    "live again, s",
    "verdict",
)


def report(
    told: Sequence[Mapping[str, Any]],
    *,
    commits: Sequence[str],
    command: str,
    left_out: Mapping[str, str],
    put_aside: Sequence[str] = (),
) -> str:
    """The page, of what each run's `verdict.json` says and the commit that it was made at;
    `put_aside` are runs without a verdict."""
    lines = [
        "# Chaos report",
        "",
        "Runs on real processes: the workloads by turns, each under several kinds of faults. What",
        "makes a run void was fixed before the first of them (`jepsen_like/validity.py`); void",
        "runs are counted here, and not repeated.",
        "",
        f"Made by `{command}`: {_at(commits)}. A run is made again by its command below the table.",
        "",
        *_summary(told),
        "",
        *_missing(left_out),
        *_put_aside(put_aside),
        "| " + " | ".join(_COLUMNS) + " |",
        "|" + "---|" * len(_COLUMNS),
        *(_row(number, each) for number, each in enumerate(told, 1)),
        "",
        *_kinds(told),
        "",
        "## Commands",
        "",
        *(f"{number}. `{each['command']}`" for number, each in enumerate(told, 1)),
    ]
    return "\n".join(lines) + "\n"


def _at(commits: Sequence[str]) -> str:
    """Runs that follow one another at one commit are told of together."""
    parts = []
    first = 1
    for commit, run in groupby(commits):
        last = first + len(list(run)) - 1
        parts.append(f"{first} to {last} at {commit}" if last > first else f"{first} at {commit}")
        first = last + 1
    return "runs " + ", ".join(parts)


def _summary(told: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    outcomes = Counter(each["summary"] for each in told)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    seconds = sum(each["safety"]["seconds"] for each in told)
    done = sum(each["safety"]["ok"] for each in told)
    controllers = sum(each["controller_elections"] for each in told)
    leaders = sum(each["leader_elections"] for each in told)
    yield f"**{len(told)} runs: {counted}.** {seconds / 60:.0f} minutes with faults; meanwhile"
    yield f"{done} operations succeeded, {controllers} active controllers and {leaders} leaders of"
    yield "partitions were elected."


def _missing(left_out: Mapping[str, str]) -> Iterable[str]:
    for kind, reason in left_out.items():
        yield f"Not in these runs: {kind} ({reason})."
    if left_out:
        yield ""


def _put_aside(names: Sequence[str]) -> Iterable[str]:
    """Whoever trusts the table must know of what is not in it."""
    if names:
        yield f"Came to no end, put aside and made anew: {', '.join(names)}."
        yield ""


def _row(number: int, told: Mapping[str, Any]) -> str:
    bitten = Counter(fault["kind"] for fault in told["faults"] if fault["bit"])
    recovered = told["recovered_seconds"]
    void = f": {'; '.join(told['void'])}" if told["summary"] == "void" else ""
    client = "" if told["client"] == "confluent" else f" ({told['client']})"
    cells = (
        number,
        told["workload"] + client,
        told["seed"],
        ", ".join(f"{kind} {count}" for kind, count in sorted(bitten.items())) or "none",
        f"{bitten.total()} of {told['faults_planned']}",
        told["safety"]["ok"],
        told["safety"]["fail"],
        told["safety"]["info"],
        f"{told['safety']['ok_a_second']:.0f}",
        f"{told['warm_up']['ok_a_second']:.0f}",
        told["controller_elections"],
        told["leader_elections"],
        "-" if recovered is None else f"{recovered:.1f}",
        told["summary"] + void,
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _kinds(told: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """How often each kind bit, and how many pairs of kinds bit in one run."""
    bitten: Counter[str] = Counter()
    pairs: set[tuple[str, str]] = set()
    for each in told:
        kinds = Counter(fault["kind"] for fault in each["faults"] if fault["bit"])
        bitten.update(kinds)
        pairs |= set(combinations(sorted(kinds), 2))
    possible = sum(clash(pair) is None for pair in combinations(bitten, 2))
    yield "## Faults that bit"
    yield ""
    yield ", ".join(f"{kind} {count}" for kind, count in sorted(bitten.items())) + "."
    yield f"Of {possible} pairs of these kinds that can meet, {len(pairs)} bit in one run."
