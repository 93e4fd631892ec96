"""Plays a scenario: each command in its turn, and what came of it beside what the file says.

The first command starts what the others act on. What breaks an invariant of the simulator ends the
scenario with a line that says so: then nothing that follows is what the file says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from jepsen_like.scenarios import (
    cluster_conditions,
    cluster_forms,
    quorum_conditions,
    quorum_forms,
)
from jepsen_like.scenarios.cluster_story import ClusterStory
from jepsen_like.scenarios.directed_cluster import PARTITION, DirectedCluster
from jepsen_like.scenarios.directed_forms import Directed
from jepsen_like.scenarios.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.forms import Forms, Misused
from jepsen_like.scenarios.machines import POLL_US
from jepsen_like.scenarios.production import Production
from jepsen_like.scenarios.quorum_story import QuorumStory
from jepsen_like.scenarios.script import Command, Script, ScriptError, rewritten
from jepsen_like.scenarios.starts import STARTS, QuorumSettings
from jepsen_like.scenarios.steady_streams import SteadyStreams
from jepsen_like.scenarios.story import Story
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.time.virtual_time import EventsSpent
from jepsen_like.sim.violation import Crash, Stuck, Violation

__all__ = ["Played", "play"]

_WAIT_MS = 5_000
_QUIETLY = "quietly "
_START = "start"
_BEGINNINGS = "`start 3`, `start 3 and 1 observers`, `start 1 controllers, 3 brokers`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    script: Script
    outputs: tuple[tuple[str, ...], ...]  # one a block
    failures: tuple[str, ...]  # what was expected in vain, or broken

    @property
    def text(self) -> str:
        """The file as it would have to be."""
        return rewritten(self.script, self.outputs)

    def differences(self) -> list[str]:
        """A unified diff from what the file says to what came; empty if they agree."""
        said = rewritten(self.script, [block.output for block in self.script.blocks])
        name = self.script.name
        return list(
            unified_diff(
                said.splitlines(), self.text.splitlines(), name, f"{name} as played", lineterm=""
            )
        )


def play(script: Script, *, is_judged: bool = True) -> Played:
    """A run that is not judged goes on when an invariant is broken. Raises ScriptError."""
    return _Performance(script, is_judged=is_judged).play()


class _Performance:
    def __init__(self, script: Script, *, is_judged: bool) -> None:
        self._script = script
        self._is_judged = is_judged
        self._story = Story()
        self._directed: Directed | None = None

    def play(self) -> Played:
        outputs = []
        is_over = False
        for block in self._script.blocks:
            lines: list[str] = []
            for command in block.commands:
                is_over = is_over or self._carry_out(command)
                lines += self._story.take()
            outputs.append(tuple(lines))
        return Played(
            script=self._script, outputs=tuple(outputs), failures=tuple(self._story.failures)
        )

    def _carry_out(self, command: Command) -> bool:
        """Returns whether the scenario has come to a bad end."""
        try:
            self._act(command.text)
        except Misused as misused:
            raise ScriptError(self._script.name, command.line, str(misused)) from misused
        except (Violation, Stuck, Crash) as broken:
            self._story.fail(f"broken: {broken}")
            return True
        except EventsSpent as spent:
            self._story.fail(f"broken: no end after {spent} events")
            return True
        return False

    def _act(self, text: str) -> None:
        if text.startswith(_QUIETLY):
            before = len(self._story.failures)
            self._act(text.removeprefix(_QUIETLY))
            self._story.take()
            for failure in self._story.failures[before:]:
                self._story.tell(failure)
        elif self._directed is None:
            if text.split()[0] != _START:
                raise Misused(f"a scenario begins with `{_START}`: {_BEGINNINGS}")
            form, arguments = STARTS.find(text)
            self._directed = self._started(form.act(*arguments.values()))
        elif text.startswith(("deliver until ", "expect ")):
            self._judge(self._directed, text)
        else:
            forms, _ = _forms_of(self._directed)
            form, arguments = forms.find(text, self._directed.names)
            _check_nodes(self._directed, arguments)
            form.act(self._directed, *arguments.values())

    def _started(self, settings: QuorumSettings | ClusterOptions) -> Directed:
        production = Production(is_judged=self._is_judged)
        match settings:
            case QuorumSettings():
                return _quorum(production, settings, self._story)
            case ClusterOptions():
                return _cluster(production, settings, self._story)

    def _judge(self, directed: Directed, text: str) -> None:
        is_awaited = text.startswith("deliver")
        what = text.removeprefix("deliver until ").removeprefix("expect ")
        holds = _condition(directed, what)
        if is_awaited and not directed.machines.reach(holds, _WAIT_MS):
            self._story.fail(f"not within {_WAIT_MS} ms: {what}")
        elif not is_awaited and not holds():
            self._story.fail(f"not so: {what}")


def _forms_of(directed: Directed) -> tuple[Forms, Forms]:
    """The commands and the conditions of what has been started."""
    if isinstance(directed, DirectedCluster):
        return cluster_forms.FORMS, cluster_conditions.CONDITIONS
    return quorum_forms.FORMS, quorum_conditions.CONDITIONS


def _quorum(production: Production, settings: QuorumSettings, story: Story) -> DirectedQuorum:
    streams = SteadyStreams()
    if not settings.are_timers_equal:
        streams.order_timers(range(1, settings.voters + settings.observers + 1))
    return DirectedQuorum(
        production, settings.options(), streams=streams, tracer=QuorumStory(story)
    )


def _cluster(production: Production, options: ClusterOptions, story: Story) -> DirectedCluster:
    streams = SteadyStreams()
    streams.order_timers([*options.controllers, *options.brokers])
    return DirectedCluster(
        production,
        options,
        streams=streams,
        tracer=ClusterStory(story, PARTITION),
        poll_us=POLL_US,
    )


def _condition(directed: Directed, text: str) -> Callable[[], bool]:
    _, conditions = _forms_of(directed)
    form, arguments = conditions.find(text, directed.names)
    _check_nodes(directed, arguments)
    return lambda: bool(form.act(directed, *arguments.values()))


def _check_nodes(directed: Directed, arguments: dict[str, Any]) -> None:
    for name in ("node", "other", "nodes", "sources", "targets"):
        said = arguments.get(name, [])
        for node in said if isinstance(said, list) else [said]:
            if node not in directed.machines.nodes:
                known = ", ".join(map(str, directed.machines.nodes))
                raise Misused(f"there is no node {node}: the nodes are {known}")
