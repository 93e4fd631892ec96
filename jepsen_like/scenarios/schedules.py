"""The schedules that come with quorumlab: texts of commands that bring a broken rule to light.

    # What happens, in a few sentences.
    # Finds: a_planted_bug; another

    start quorum, voters=3
    first = the leader
    ...
    finish

A schedule holds on the shipped rules. With any of the bugs planted that it finds it raises
Violation or Stuck, or, if it is one of harm, the history of its clients shows it. A schedule that
finds nothing shows what a setting lets happen.

Beside the commands of a scenario (`quorumlab chaos scenario --commands`) there are `do NAME`, which
carries out `schedules/steps/NAME.txt`, and `repeat COUNT times`, with the repeated lines indented.
`deliver until CONDITION, or BOUND after MS ms` says which bound is exceeded if it does not come to
hold; where neither that nor the condition names one, the schedule was not what it should have been.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from jepsen_like.scenarios.cluster import cluster_conditions, cluster_forms, transaction_forms
from jepsen_like.scenarios.cluster.directed_cluster import DirectedCluster
from jepsen_like.scenarios.language.forms import Form, Forms, Misused
from jepsen_like.scenarios.language.script import Block, Command, ScriptError, blocks_in, parse
from jepsen_like.scenarios.quorum import quorum_conditions, quorum_forms
from jepsen_like.scenarios.quorum.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.settings import STARTS, ClusterSettings, started
from jepsen_like.scenarios.stage import directed_forms
from jepsen_like.scenarios.stage.directed_forms import AROUND, Directed
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.scenarios.zookeeper import zk_forms
from jepsen_like.scenarios.zookeeper.directed_zookeeper import DirectedZooKeeper

__all__ = [
    "ALL_SCHEDULES",
    "AWAIT",
    "HARM",
    "QUORUM_SCHEDULES",
    "SCHEDULES",
    "SIMULATED",
    "VOCABULARIES",
    "Beginning",
    "Schedule",
    "Schedules",
    "carry_out",
    "condition_of",
    "in_turn",
    "schedule_text",
    "vocabulary",
]

AWAIT = "deliver until "
_REPEAT = re.compile(r"repeat (\d+) times")
_UNTIL = re.compile(
    r"deliver until (?P<what>.+?)(?:, or (?P<bound>[A-Z]+-[A-Z]+) after (?P<ms>\d+) ms)?"
)

Beginning = Callable[..., Directed]  # of a production, with the settings of the schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    name: str
    story: str  # what happens in it, in a few sentences
    finds: tuple[str, ...]  # names of plants; several that belong together joined by commas
    commands: tuple[str, ...]

    def run(
        self, production: Production, beginnings: Mapping[str, Beginning] | None = None
    ) -> None:
        """By what is begun so: a quorum, a cluster or one with ZooKeeper; simulated by default."""
        start, *commands = self.commands
        kind, settings = started(start)
        wanted = {**settings, **production.settings}
        directed = (beginnings or SIMULATED)[kind](production, **wanted)
        for command in commands:
            carry_out(directed, kind, command)


Schedules = Mapping[str, Schedule]


# --- what may be said -------------------------------------------------------------------------

# By what is started: its commands, and its conditions.
VOCABULARIES: Mapping[str, tuple[Forms, Forms]] = {
    "quorum": (quorum_forms.FORMS, quorum_conditions.CONDITIONS),
    "cluster": (
        Forms(cluster_forms.FORMS, transaction_forms.FORMS, around=AROUND),
        Forms(cluster_conditions.CONDITIONS, transaction_forms.CONDITIONS),
    ),
    "zookeeper": (zk_forms.FORMS, zk_forms.CONDITIONS),
}


def vocabulary() -> Iterator[dict[str, str]]:
    """What several kinds share is there once. Only schedules begin one with ZooKeeper."""
    for usage, meaning in STARTS.items():
        yield {"for": "start", "write": usage, "meaning": meaning}
    for usage, meaning in AROUND.items():
        yield {"for": "all", "write": usage, "meaning": meaning}
    shared = {"all": (directed_forms.FORMS, directed_forms.CONDITIONS)}
    told: list[Form] = []
    for place, prefix in enumerate(("", "condition, ")):
        for kind, tables in {**shared, **VOCABULARIES}.items():
            new = [form for form in tables[place].all if form not in told]
            told += new
            for form in new:
                yield {"for": prefix + kind, "write": form.usage, "meaning": form.meaning}


def carry_out(directed: Directed, kind: str, command: str) -> None:
    """One command of what has been started, a `quorum`, a `cluster` or `zookeeper`. Raises Misused,
    Violation or Stuck."""
    if command.startswith(AWAIT):
        _await(directed, kind, command)
    else:
        forms, _ = VOCABULARIES[kind]
        form, arguments = forms.find(command, directed.names)
        form.act(directed, *arguments.values())


def condition_of(directed: Directed, kind: str, what: str) -> tuple[Callable[[], bool], str]:
    """Does it hold? And the bound that is exceeded if it does not come to. Raises Misused."""
    _, conditions = VOCABULARIES[kind]
    form, arguments = conditions.find(what, directed.names)
    return lambda: bool(form.act(directed, *arguments.values())), form.bound


def _await(directed: Directed, kind: str, command: str) -> None:
    match = _UNTIL.fullmatch(command)
    if match is None:
        raise Misused(f"`{command}` cannot be read: write `{AWAIT}CONDITION`")
    holds, bound = condition_of(directed, kind, match["what"])
    within = {"within_ms": int(match["ms"])} if match["ms"] else {}
    directed.until(holds, match["what"], bound=match["bound"] or bound, **within)


# --- what is begun in the simulator ---------------------------------------------------------------


def _cluster(production: Production, **settings: Any) -> DirectedCluster:
    wanted = ClusterSettings(**settings)
    options = wanted.options(is_varied=production.seed != 0)
    cluster = DirectedCluster(production, options, events_max=_CLUSTER_EVENTS_MAX)
    cluster.begin(wanted.start_ms)
    return cluster


_CLUSTER_EVENTS_MAX = 20_000
SIMULATED: Mapping[str, Beginning] = {
    "quorum": DirectedQuorum,
    "cluster": _cluster,
    "zookeeper": DirectedZooKeeper,
}


# --- the texts ------------------------------------------------------------------------------------


_SCHEDULES = files(__package__) / "schedules"
_FOLDERS = ("partition", "transaction", "quorum", "zookeeper", "harm")


def schedule_text(name: str) -> str | None:
    """The file of a schedule that is shipped; None: there is no such one."""
    for folder in _FOLDERS:
        path = _SCHEDULES / folder / f"{name}.txt"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None


def in_turn(name: str, commands: Iterable[Command]) -> Iterator[Command]:
    """What is repeated, and the steps that are elsewhere, each with the line that says so.

    Raises ScriptError.
    """
    waiting = deque(commands)
    while waiting:
        command = waiting.popleft()
        if match := _REPEAT.fullmatch(command.text):
            inner: list[Command] = []
            while waiting and waiting[0].text.startswith("    "):
                each = waiting.popleft()
                inner.append(replace(each, text=each.text.strip()))
            for _ in range(int(match[1])):
                yield from in_turn(name, inner)
        elif command.text.startswith("do "):
            steps = command.text.removeprefix("do ").replace(" ", "_")
            if steps not in _STEPS:
                problem = f"there are no steps `{steps}`: {', '.join(sorted(_STEPS))}"
                raise ScriptError(name, command.line, problem)
            found = in_turn(steps, _commands(_STEPS[steps]))
            yield from (replace(each, line=command.line) for each in found)
        else:
            yield command


def _commands(blocks: Iterable[Block]) -> Iterator[Command]:
    return (command for block in blocks for command in block.commands)


def _paths(folder: str) -> list[Traversable]:
    return sorted((_SCHEDULES / folder).iterdir(), key=str)


def _schedules(folder: str) -> Schedules:
    found = (_schedule(path.name, path.read_text(encoding="utf-8")) for path in _paths(folder))
    return {schedule.name: schedule for schedule in found}


def _schedule(name: str, text: str) -> Schedule:
    script = parse(name, text)
    return Schedule(
        name=name.removesuffix(".txt"),
        story=script.story,
        finds=script.finds,
        commands=tuple(each.text for each in in_turn(name, _commands(script.blocks))),
    )


def _steps(path: Traversable) -> tuple[Block, ...]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return blocks_in(path.name, lines, is_schedule=True)[0]


_STEPS = {path.name.removesuffix(".txt"): _steps(path) for path in _paths("steps")}
QUORUM_SCHEDULES = _schedules("quorum")
SCHEDULES: Schedules = {**_schedules("partition"), **_schedules("transaction")}
HARM: Schedules = {
    **_schedules("harm"),
    "leads_again_without_knowing": SCHEDULES["leads_again_without_knowing"],
    "logs_of_one_length": SCHEDULES["logs_of_one_length"],
}
ALL_SCHEDULES: Schedules = {**SCHEDULES, **QUORUM_SCHEDULES, **_schedules("zookeeper")}
