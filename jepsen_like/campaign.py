"""Many runs over all kinds of faults: which ones, and the table of what came of them.

Runs take turns among the workloads and both clients. The kinds of each run are those whose pairs no
earlier run has had together, as far as the workload has somebody for them to strike. What is
planned follows from the seed alone, so that a campaign that was interrupted goes on as it began.
Kinds that need proxies between the nodes never meet those that need namespaces.

A void run stays in the table and is counted: none is repeated until it pleases. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle, groupby
from random import Random
from typing import Any

from jepsen_like.faults.kinds import clash

__all__ = [
    "ADMIN_LOSES_BY",
    "KINDS_A_RUN",
    "Planned",
    "is_report",
    "plan_campaign",
    "plan_zk_campaign",
    "report",
    "section",
    "with_sections",
]

KINDS_A_RUN = 4
_TRIES = 200  # sets of kinds that are drawn for a run, to take the one with most new pairs
# One replica may be enough there for an acknowledgement, and then one disk is enough to lose.
ADMIN_LOSES_BY = ("power-loss", "fsync-error", "torn-write", "bit-flip")
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
    "admin": ADMIN_LOSES_BY,
    # It writes a few records a second: a full disk has room for those, up to the end of a block.
    "partition-epoch": ("full-disk",),
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
    ("transactions", ()),
    ("log", ("--no-idempotence",)),
    ("set", ()),
    ("bank", ()),
    ("observe", ()),
    ("partition-epoch", ()),
    ("kafka", ()),
)

# With ZooKeeper: what its brokers and their links can suffer. Disks are left to the quorum, since
# these designs rely on replication alone.
_ZK_TURNS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("log", ()),
    ("log", ("--no-idempotence",)),
    ("log", ("--client", "aiokafka")),
    ("set", ()),
)
_ZK_ALWAYS = ("kill-zookeeper", "pause")  # a pause outlasts a session
_ZK_OTHERS = (
    "cut-zookeeper",
    "kill",
    "stop",
    "partition",
    "partition-one-way",
    "delay",
    "reset",
)


def plan_campaign(*, runs: int, kinds: Sequence[str], seed: int) -> tuple[Planned, ...]:
    random = Random(seed)
    seen: Counter[tuple[str, str]] = Counter()

    def drawn(workload: str) -> tuple[str, ...]:
        possible = [kind for kind in kinds if kind not in _UNFIT.get(workload, ())]
        chosen = _chosen(random, possible, seen)
        seen.update(combinations(chosen, 2))
        return chosen

    return _planned(runs, seed, _TURNS, drawn)


def plan_zk_campaign(design: str, *, runs: int, seed: int) -> tuple[Planned, ...]:
    """The same for every design: they are to be compared."""
    random = Random(seed)
    seen: Counter[str] = Counter()

    def drawn(workload: str) -> tuple[str, ...]:
        others = min(
            combinations(random.sample(_ZK_OTHERS, len(_ZK_OTHERS)), KINDS_A_RUN - len(_ZK_ALWAYS)),
            key=lambda each: sum(seen[kind] for kind in each),
        )
        seen.update(others)
        return tuple(sorted((*_ZK_ALWAYS, *others)))

    return _planned(runs, seed, _ZK_TURNS, drawn, ("--design", design))


def _planned(
    runs: int,
    seed: int,
    turns: Sequence[tuple[str, tuple[str, ...]]],
    drawn: Callable[[str], tuple[str, ...]],
    first: tuple[str, ...] = (),
) -> tuple[Planned, ...]:
    """`drawn` has the kinds of faults of the next run, by its workload."""
    return tuple(
        Planned(
            number=number,
            seed=seed * 1000 + number,
            workload=workload,
            kinds=drawn(workload),
            arguments=(*first, *arguments),
        )
        for number, (workload, arguments) in zip(range(1, runs + 1), cycle(turns), strict=False)
    )


def _chosen(
    random: Random, kinds: Sequence[str], seen: Mapping[tuple[str, str], int]
) -> tuple[str, ...]:
    """Prefers kinds that meet for the first time."""
    count = min(KINDS_A_RUN, len(kinds))
    drawn = [tuple(sorted(random.sample(kinds, count))) for _ in range(_TRIES)]
    possible = [each for each in drawn if clash(each) is None]
    return min(possible, key=lambda each: sum(seen[pair] for pair in combinations(each, 2)))


# --- the table -------------------------------------------------------------------------------

_TITLE = "# Chaos report"
_SECTION = "## Design "

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
        _TITLE,
        "",
        "Runs on real processes: the workloads by turns, each under several kinds of faults. What",
        "makes a run void was fixed before the first of them (`jepsen_like/faults/validity.py`);",
        "void runs are counted here, and not repeated. Each run leaves a page, `report.html`,",
        "which begins with what it has shown, what was planted, and the command that makes it",
        "again; `quorumlab check RUN --export FILE.svg` (or `.png`) makes one picture of that.",
        "",
        f"Made by `{command}`: {_at(commits)}. A run is made again by its command below the table.",
        "",
        *_summary(told),
        "",
        *_missing(left_out),
        *_put_aside(put_aside),
        *_table(told),
        "",
        *_kinds(told),
        "",
        "## Commands",
        "",
        *_commands(told),
    ]
    return "\n".join(lines) + "\n"


def section(
    design: str, told: Sequence[Mapping[str, Any]], *, commits: Sequence[str], command: str
) -> str:
    """The section on a design with ZooKeeper, which follows the quorum's runs."""
    admitted: dict[str, dict[str, None]] = {}  # rules by reason
    for each in told:
        for rule, why in each["admitted"].items():
            admitted.setdefault(why, {})[rule] = None
    lines = [
        f"{_SECTION}{design}",
        "",
        f"Made by `{command}`: {_at(commits)}.",
        "",
        *_summary(told),
        "",
        *_table(told),
        "",
        *(
            f"Admitted by its document: {', '.join(rules)}; {why}."
            for why, rules in admitted.items()
        ),
        *([""] if admitted else []),
        *_commands(told),
    ]
    return "\n".join(lines) + "\n"


def is_report(text: str) -> bool:
    """Whether a page that begins like this is one of ours, of the quorum or of designs alone."""
    return text.lstrip().startswith((_TITLE, _SECTION))


def with_sections(page: str, *sources: str, order: Sequence[str]) -> str:
    """The page, and behind it the sections of all sources, the last one of each design."""
    first, _ = _split(page)
    found = {name: text for source in sources for name, text in _split(source)[1].items()}
    return "\n".join([first, *(found[name] for name in order if name in found)])


def _split(page: str) -> tuple[str, dict[str, str]]:
    """The text before the sections of designs, and the sections by name."""
    first, *rest = f"\n{page}".split(f"\n{_SECTION}")
    named = {text.partition("\n")[0]: f"{_SECTION}{text.rstrip()}\n" for text in rest}
    return first.removeprefix("\n").rstrip() + "\n" if first.strip() else "", named


def _table(told: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield "| " + " | ".join(_COLUMNS) + " |"
    yield "|" + "---|" * len(_COLUMNS)
    yield from (_row(number, each) for number, each in enumerate(told, 1))


def _commands(told: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    return (f"{number}. `{each['command']}`" for number, each in enumerate(told, 1))


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
    proven = sum(bool(fault["bit"]) for each in told for fault in each["faults"])
    planned = sum(each["faults_planned"] for each in told)
    yield f"**{done:,} operations succeeded in {len(told):,} runs, under {proven:,} proven faults"
    lasted = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds:.0f} s"
    yield f"of {planned:,}: {counted}.** {lasted} with faults; meanwhile"
    yield f"{controllers} active controllers and {leaders} leaders of partitions were elected."


def _missing(left_out: Mapping[str, str]) -> Iterable[str]:
    for kind, reason in left_out.items():
        yield f"Not in these runs: {kind} ({reason})."
    if left_out:
        yield ""


def _put_aside(names: Sequence[str]) -> Iterable[str]:
    """Names the runs that are not in the table: readers who trust it must know of them."""
    if names:
        yield f"Came to no end, put aside and made anew: {', '.join(names)}."
        yield ""


def _row(number: int, told: Mapping[str, Any]) -> str:
    bitten = Counter(fault["kind"] for fault in told["faults"] if fault["bit"])
    recovered = told["recovered_seconds"]
    void = f": {'; '.join(told['void'])}" if told["summary"] == "void" else ""
    rules = ", ".join(told.get("admitted", ()))
    admitted = f"; admitted: {rules}" if rules else ""
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
        told["summary"] + void + admitted,
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
