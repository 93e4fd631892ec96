"""Plays a script: each command in its turn, and what came of it beside what the file says.

The first command starts what the others act on. What breaks an invariant of the simulator ends the
script with a line that says so: then nothing that follows is what the file says. What came of the
commands of a schedule is dated in virtual time: the same text gives the same lines.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from jepsen_like.scenarios.cluster_story import ClusterStory
from jepsen_like.scenarios.directed_cluster import PARTITION, DirectedCluster
from jepsen_like.scenarios.directed_forms import Directed
from jepsen_like.scenarios.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.forms import Misused
from jepsen_like.scenarios.machines import POLL_US
from jepsen_like.scenarios.production import Production
from jepsen_like.scenarios.quorum_story import QuorumStory
from jepsen_like.scenarios.schedules import SIMULATED, carry_out, in_turn, started
from jepsen_like.scenarios.script import Command, Script, ScriptError, rewritten
from jepsen_like.scenarios.starts import STARTS, Start
from jepsen_like.scenarios.steady_streams import SteadyStreams
from jepsen_like.scenarios.story import Story
from jepsen_like.scenarios.vocabulary import VOCABULARIES
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
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
    production = Production(is_judged=is_judged)
    playing = (_Schedule if script.is_schedule else _Scenario)(script.name, production)
    outputs: list[tuple[str, ...]] = []
    broken = ""
    for block in script.blocks:
        lines: list[str] = []
        for command in playing.in_turn(block.commands):
            if broken:
                break
            broken = _broken(script.name, command, playing)
            lines += playing.told()
            if broken:
                playing.failures.append(broken)
                lines.append(broken)
        outputs.append(tuple(lines))
    return Played(script=script, outputs=tuple(outputs), failures=tuple(playing.failures))


def _broken(name: str, command: Command, playing: "_Schedule | _Scenario") -> str:
    """Carry the command out; returns to which bad end the script has come, or nothing."""
    try:
        playing.act(command.text)
    except Misused as misused:
        raise ScriptError(name, command.line, str(misused)) from misused
    except KeyError as error:
        problem = f"`{command.text}`: there is no {error}"
        raise ScriptError(name, command.line, problem) from error
    except (Violation, Stuck, Crash) as error:
        return f"broken: {error}"
    except EventsSpent as spent:
        return f"broken: no end after {spent} events"
    return ""


class _Schedule:
    def __init__(self, name: str, production: Production) -> None:
        self._name = name
        self._production = production
        self._directed: Directed | None = None
        self._kind = ""
        self._seen = 0  # steps of the production
        self.failures: list[str] = []

    def in_turn(self, commands: tuple[Command, ...]) -> Iterator[Command]:
        return in_turn(self._name, commands)

    def act(self, text: str) -> None:
        if self._directed is not None:
            carry_out(self._directed, self._kind, text)
            return
        self._kind, settings = started(text)
        try:
            self._directed = SIMULATED[self._kind](self._production, **settings)
        except TypeError as error:
            raise Misused(f"`{text}` cannot be started: {error}") from error

    def told(self) -> list[str]:
        """What has come since it was asked last."""
        steps, self._seen = self._production.steps[self._seen :], len(self._production.steps)
        known = {step.what for step in steps}
        story = [] if self._directed is None else self._directed.story.take()
        return [
            *(f"{step.at_ms:>6} ms  {step.what}" for step in steps),
            *(line for line in story if line not in known),
        ]


class _Scenario:
    def __init__(self, _name: str, production: Production) -> None:
        self._production = production
        self._story = Story()
        self._directed: Directed | None = None
        self._kind = ""
        self.failures = self._story.failures

    def in_turn(self, commands: tuple[Command, ...]) -> Iterator[Command]:
        return iter(commands)

    def told(self) -> list[str]:
        return self._story.take()

    def act(self, text: str) -> None:
        if text.startswith(_QUIETLY):
            before = len(self.failures)
            self.act(text.removeprefix(_QUIETLY))
            self._story.take()
            for failure in self.failures[before:]:
                self._story.tell(failure)
        elif self._directed is None:
            if text.split()[0] != _START:
                raise Misused(f"a scenario begins with `{_START}`: {_BEGINNINGS}")
            form, arguments = STARTS.find(text)
            self._directed = self._started(form.act(*arguments.values()))
        elif text.startswith(("deliver until ", "expect ")):
            self._judge(self._directed, text)
        else:
            forms, _ = VOCABULARIES[self._kind]
            form, arguments = forms.find(text, self._directed.names)
            _check_nodes(self._directed, arguments)
            form.act(self._directed, *arguments.values())

    def _started(self, start: Start) -> Directed:
        streams = SteadyStreams()
        match start.options:
            case Options() as options:
                self._kind = "quorum"
                if not start.are_timers_equal:
                    streams.order_timers(range(1, options.voters + options.observers + 1))
                tracer = QuorumStory(self._story)
                return DirectedQuorum(self._production, options, streams=streams, tracer=tracer)
            case ClusterOptions() as options:
                self._kind = "cluster"
                streams.order_timers([*options.controllers, *options.brokers])
                return DirectedCluster(
                    self._production,
                    options,
                    streams=streams,
                    tracer=ClusterStory(self._story, PARTITION),
                    poll_us=POLL_US,
                )

    def _judge(self, directed: Directed, text: str) -> None:
        is_awaited = text.startswith("deliver")
        what = text.removeprefix("deliver until ").removeprefix("expect ")
        _, conditions = VOCABULARIES[self._kind]
        form, arguments = conditions.find(what, directed.names)
        _check_nodes(directed, arguments)

        def holds() -> bool:
            return bool(form.act(directed, *arguments.values()))

        if is_awaited and not directed.machines.reach(holds, _WAIT_MS):
            self._story.fail(f"not within {_WAIT_MS} ms: {what}")
        elif not is_awaited and not holds():
            self._story.fail(f"not so: {what}")


def _check_nodes(directed: Directed, arguments: dict[str, Any]) -> None:
    for name in ("node", "other", "nodes", "sources", "targets"):
        said = arguments.get(name, [])
        for node in said if isinstance(said, list) else [said]:
            if node not in directed.machines.nodes:
                known = ", ".join(map(str, directed.machines.nodes))
                raise Misused(f"there is no node {node}: the nodes are {known}")
