"""Plays a script: each command in its turn, and what came of it beside what the file says.

What breaks an invariant of the simulator ends the script with a line that says so. What came of the
commands of a schedule is dated in virtual time: the same text gives the same lines.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff

from jepsen_like.scenarios.cluster.cluster_story import ClusterStory
from jepsen_like.scenarios.cluster.directed_cluster import PARTITION, DirectedCluster
from jepsen_like.scenarios.language.forms import Misused
from jepsen_like.scenarios.language.script import Block, Command, Script, ScriptError, rewritten
from jepsen_like.scenarios.quorum.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.quorum.quorum_story import QuorumStory
from jepsen_like.scenarios.schedules import AWAIT, SIMULATED, carry_out, condition_of, in_turn
from jepsen_like.scenarios.settings import started, told
from jepsen_like.scenarios.stage.directed_forms import Directed
from jepsen_like.scenarios.stage.machines import POLL_US
from jepsen_like.scenarios.stage.steady_streams import SteadyStreams
from jepsen_like.scenarios.stage.story import Production, Story
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.time.virtual_time import EventsSpent
from jepsen_like.sim.violation import Crash, Stuck, Violation

__all__ = ["Played", "play"]

_WAIT_MS = 5_000
_QUIETLY = "quietly "
_EXPECT = "expect "


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
    playing = _Performance(script, Production(is_judged=is_judged))
    outputs = tuple(tuple(playing.lines_of(block)) for block in script.blocks)
    return Played(script=script, outputs=outputs, failures=tuple(playing.failures))


class _Performance:
    def __init__(self, script: Script, production: Production) -> None:
        self.failures: list[str] = []
        self._name = script.name
        self._is_schedule = script.is_schedule
        self._production = production
        self._story = Story()
        self._directed: Directed | None = None
        self._kind = ""
        self._seen = 0  # steps of the production
        self._is_broken = False

    def lines_of(self, block: Block) -> Iterator[str]:
        """Carry the commands out; nothing once the script has come to a bad end."""
        for command in in_turn(self._name, block.commands):
            if self._is_broken:
                return
            broken = self._broken(command)
            yield from self._told()
            if broken:
                self._is_broken = True
                self.failures.append(broken)
                yield broken

    def _broken(self, command: Command) -> str:
        """Carry the command out; returns to which bad end the script has come, or nothing."""
        try:
            self._act(command.text)
        except Misused as misused:
            raise ScriptError(self._name, command.line, str(misused)) from misused
        except KeyError as error:
            problem = f"`{command.text}`: there is no {error}"
            raise ScriptError(self._name, command.line, problem) from error
        except (Violation, Stuck, Crash) as error:
            return f"broken: {error}"
        except EventsSpent as spent:
            return f"broken: no end after {spent} events"
        return ""

    def _told(self) -> list[str]:
        """What has come since it was asked last."""
        story = self._story.take()
        if not self._is_schedule:
            return story
        steps, self._seen = self._production.steps[self._seen :], len(self._production.steps)
        known = {step.what for step in steps}
        return [
            *(f"{step.at_ms:>6} ms  {step.what}" for step in steps),
            *(line for line in story if line not in known),
        ]

    def _fail(self, line: str) -> None:
        self.failures.append(line)
        self._story.tell(line)

    # --- commands -------------------------------------------------------------------------

    def _act(self, text: str) -> None:
        if text.startswith(_QUIETLY):
            before = len(self.failures)
            self._act(text.removeprefix(_QUIETLY))
            self._told()
            self._story.tell(*self.failures[before:])
        elif self._directed is None:
            self._directed = self._begun(text)
            self._story = self._directed.story
        elif text.startswith(_EXPECT):
            what = text.removeprefix(_EXPECT)
            if not condition_of(self._directed, self._kind, what)[0]():
                self._fail(f"not so: {what}")
        elif text.startswith(AWAIT) and not self._is_schedule:
            what = text.removeprefix(AWAIT)
            holds, _ = condition_of(self._directed, self._kind, what)
            if not self._directed.machines.reach(holds, _WAIT_MS):
                self._fail(f"not within {_WAIT_MS} ms: {what}")
        else:
            carry_out(self._directed, self._kind, text)

    def _begun(self, text: str) -> Directed:
        if self._is_schedule:
            self._kind, settings = started(text)
            return SIMULATED[self._kind](self._production, **settings)
        streams = SteadyStreams()
        options, are_drawn = told(text)
        if isinstance(options, Options):
            self._kind = "quorum"
            if are_drawn:
                streams.order_timers(range(1, options.voters + options.observers + 1))
            quorum_story = QuorumStory(self._story)
            return DirectedQuorum(self._production, options, streams=streams, tracer=quorum_story)
        self._kind = "cluster"
        streams.order_timers([*options.controllers, *options.brokers])
        return DirectedCluster(
            self._production,
            options,
            streams=streams,
            tracer=ClusterStory(self._story, PARTITION),
            poll_us=POLL_US,
        )
