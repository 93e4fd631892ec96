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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jepsen_like.scenarios import (
    cluster_conditions,
    cluster_forms,
    quorum_conditions,
    quorum_forms,
    zk_forms,
)
from jepsen_like.scenarios.cluster_settings import ClusterSettings
from jepsen_like.scenarios.directed_cluster import DirectedCluster
from jepsen_like.scenarios.directed_forms import Directed
from jepsen_like.scenarios.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.directed_zookeeper import DirectedZooKeeper
from jepsen_like.scenarios.forms import Forms
from jepsen_like.scenarios.production import Production

__all__ = [
    "ALL_SCHEDULES",
    "HARM",
    "QUORUM_SCHEDULES",
    "SCHEDULES",
    "SIMULATED",
    "ZK_SCHEDULES",
    "Beginning",
    "Schedule",
    "Schedules",
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
        kind, settings = _started(start)
        wanted = {**settings, **production.settings}
        directed = (beginnings or SIMULATED)[kind](production, **wanted)
        forms, conditions = _VOCABULARIES[kind]
        for command in commands:
            if command.startswith("deliver until "):
                _await(directed, conditions, command)
            else:
                form, arguments = forms.find(command, directed.names)
                form.act(directed, *arguments.values())


Schedules = Mapping[str, Schedule]


def _await(directed: Directed, conditions: Forms, command: str) -> None:
    match = _UNTIL.fullmatch(command)
    assert match is not None, command
    what = match["what"]
    form, arguments = conditions.find(what, directed.names)
    within: dict[str, Any] = {"bound": match["bound"] or form.bound}
    if match["ms"]:
        within["within_ms"] = int(match["ms"])
    directed.until(lambda: bool(form.act(directed, *arguments.values())), what, **within)


def _started(command: str) -> tuple[str, dict[str, Any]]:
    """`start quorum, voters=3`: what is started, and its settings."""
    kind, *pairs = command.removeprefix("start ").split(", ")
    return kind, {name: _setting(value) for name, value in (pair.split("=") for pair in pairs)}


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


def _commands(lines: list[str]) -> Iterator[str]:
    """All of them, one after the other: what is repeated, and the steps that are elsewhere, too."""
    told = [line for line in lines if line and not line.startswith("#")]
    while told:
        line = told.pop(0)
        if repeated := _REPEAT.fullmatch(line):
            block: list[str] = []
            while told and told[0].startswith("    "):
                block.append(told.pop(0).strip())
            yield from int(repeated[1]) * [*_commands(block)]
        elif line.startswith("do "):
            yield from _commands(_STEPS[line.removeprefix("do ").replace(" ", "_")])
        else:
            yield line


_STEPS = dict(_texts("steps"))
QUORUM_SCHEDULES = _schedules("quorum")
SCHEDULES = _schedules("partition")
HARM: Schedules = {
    **_schedules("harm"),
    "leads_again_without_knowing": SCHEDULES["leads_again_without_knowing"],
}
ZK_SCHEDULES = _schedules("zookeeper")
ALL_SCHEDULES: Schedules = {**SCHEDULES, **QUORUM_SCHEDULES, **ZK_SCHEDULES}
