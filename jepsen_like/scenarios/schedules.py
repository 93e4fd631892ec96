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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any

from jepsen_like.scenarios import (
    cluster_conditions,
    cluster_forms,
    quorum_conditions,
    quorum_forms,
    zk_forms,
)
from jepsen_like.scenarios.cluster_settings import ClusterSettings, ZkSettings
from jepsen_like.scenarios.directed_cluster import DirectedCluster
from jepsen_like.scenarios.directed_forms import Directed
from jepsen_like.scenarios.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.directed_zookeeper import DirectedZooKeeper
from jepsen_like.scenarios.forms import Forms, Misused, near_or_all
from jepsen_like.scenarios.production import Production
from jepsen_like.scenarios.script import SEPARATOR
from jepsen_like.sim.assemblies.quorum.quorum_options import Options

__all__ = [
    "ALL_SCHEDULES",
    "HARM",
    "QUORUM_SCHEDULES",
    "SCHEDULES",
    "SIMULATED",
    "Beginning",
    "Schedule",
    "Schedules",
    "carry_out",
    "repeated",
    "schedule_text",
    "started",
    "steps",
    "without_output",
]

_FINDS = "Finds: "
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


def carry_out(directed: Directed, kind: str, command: str) -> None:
    """One command of what has been started, a `quorum`, a `cluster` or `zookeeper`. Raises Misused,
    Violation or Stuck."""
    forms, conditions = _VOCABULARIES[kind]
    if command.startswith("deliver until "):
        _await(directed, conditions, command)
    else:
        form, arguments = forms.find(command, directed.names)
        form.act(directed, *arguments.values())


def _await(directed: Directed, conditions: Forms, command: str) -> None:
    match = _UNTIL.fullmatch(command)
    if match is None:
        raise Misused(f"`{command}` cannot be read: write `deliver until CONDITION`")
    what = match["what"]
    form, arguments = conditions.find(what, directed.names)
    within: dict[str, Any] = {"bound": match["bound"] or form.bound}
    if match["ms"]:
        within["within_ms"] = int(match["ms"])
    directed.until(lambda: bool(form.act(directed, *arguments.values())), what, **within)


def started(command: str) -> tuple[str, dict[str, Any]]:
    """`start quorum, voters=3`: what is started, and its settings. Raises Misused."""
    kind, *pairs = command.removeprefix("start ").split(", ")
    if not command.startswith("start ") or kind not in _VOCABULARIES:
        known = " or ".join(f"`start {each}`" for each in _VOCABULARIES)
        raise Misused(f"`{command}` cannot be read: a schedule begins with {known}")
    settings = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise Misused(f"`{pair}` is no setting: write NAME=VALUE")
        options = [each.name for each in fields(_SETTINGS[kind])]
        if name not in options:
            raise Misused(f"`{command}`: no option {name!r}: {near_or_all(name, options)}")
        settings[name] = _setting(value)
    return kind, settings


def _setting(text: str) -> int | bool | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() else text


# --- what is begun in the simulator ---------------------------------------------------------------


def _cluster(production: Production, **settings: Any) -> DirectedCluster:
    wanted = ClusterSettings(**settings)
    options = wanted.options(is_varied=production.seed != 0)
    cluster = DirectedCluster(production, options, events_max=_CLUSTER_EVENTS_MAX)
    cluster.begin(wanted.start_ms)
    return cluster


_CLUSTER_EVENTS_MAX = 20_000
_VOCABULARIES: Mapping[str, tuple[Forms, Forms]] = {
    "quorum": (quorum_forms.FORMS, quorum_conditions.CONDITIONS),
    "cluster": (cluster_forms.FORMS, cluster_conditions.CONDITIONS),
    "zookeeper": (zk_forms.FORMS, zk_forms.CONDITIONS),
}
_SETTINGS: Mapping[str, type[Options | ClusterSettings | ZkSettings]] = {
    "quorum": Options,
    "cluster": ClusterSettings,
    "zookeeper": ZkSettings,
}
SIMULATED: Mapping[str, Beginning] = {
    "quorum": DirectedQuorum,
    "cluster": _cluster,
    "zookeeper": DirectedZooKeeper,
}


# --- the texts ------------------------------------------------------------------------------------


def _texts(folder: str) -> Iterator[tuple[str, list[str]]]:
    for path in sorted((files(__package__) / "schedules" / folder).iterdir(), key=str):
        name = path.name.removesuffix(".txt")
        yield name, path.read_text(encoding="utf-8").splitlines()


def _schedules(folder: str) -> Schedules:
    return {name: _schedule(name, lines) for name, lines in _texts(folder)}


def _schedule(name: str, lines: list[str]) -> Schedule:
    told = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
    found = [line.removeprefix(_FINDS) for line in told if line.startswith(_FINDS)]
    return Schedule(
        name=name,
        story=" ".join(line for line in told if not line.startswith(_FINDS)),
        finds=tuple(plants for line in found for plants in line.split("; ")),
        commands=tuple(_commands(lines)),
    )


def without_output(lines: Iterable[str]) -> Iterator[str]:
    """What came of the commands stands behind a line `----`, up to an empty one."""
    is_output = False
    for line in lines:
        is_output = line == SEPARATOR or (is_output and bool(line))
        if not is_output:
            yield line


def steps(command: str) -> list[str]:
    """The commands of `do NAME`. Raises Misused."""
    name = command.removeprefix("do ").replace(" ", "_")
    if name not in _STEPS:
        raise Misused(f"there are no steps `{name}`: {', '.join(sorted(_STEPS))}")
    return list(_commands(_STEPS[name]))


def repeated(line: str) -> int | None:
    """How often `repeat COUNT times` has the lines below it done; None: it is another command."""
    match = _REPEAT.fullmatch(line)
    return int(match[1]) if match else None


def _commands(lines: list[str]) -> Iterator[str]:
    """All of them, one after the other: what is repeated, and the steps that are elsewhere, too."""
    told = [line for line in without_output(lines) if line and not line.startswith("#")]
    while told:
        line = told.pop(0)
        if (times := repeated(line)) is not None:
            block: list[str] = []
            while told and told[0].startswith("    "):
                block.append(told.pop(0).strip())
            yield from times * [*_commands(block)]
        elif line.startswith("do "):
            yield from steps(line)
        else:
            yield line


_FOLDERS = ("partition", "quorum", "zookeeper", "harm")


def schedule_text(name: str) -> str | None:
    """The file of a schedule that is shipped; None: there is no such one."""
    for folder in _FOLDERS:
        path = files(__package__) / "schedules" / folder / f"{name}.txt"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None


_STEPS = dict(_texts("steps"))
QUORUM_SCHEDULES = _schedules("quorum")
SCHEDULES = _schedules("partition")
HARM: Schedules = {
    **_schedules("harm"),
    "leads_again_without_knowing": SCHEDULES["leads_again_without_knowing"],
}
ALL_SCHEDULES: Schedules = {**SCHEDULES, **QUORUM_SCHEDULES, **_schedules("zookeeper")}
