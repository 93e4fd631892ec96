"""Plays a schedule as a scenario is played: command by command, with what came of each.

The text is that of `jepsen_like.scenarios.schedules`. Commands that stand below one another are a
block; what came of a block may stand behind a line `----`, and is written there by `--rewrite`.
What came is dated in virtual time: the same text gives the same lines.
"""

from collections.abc import Iterator

from jepsen_like.scenarios.directed_forms import Directed
from jepsen_like.scenarios.forms import Misused
from jepsen_like.scenarios.performance import Played
from jepsen_like.scenarios.production import Production
from jepsen_like.scenarios.schedules import SIMULATED, carry_out, repeated, started, steps
from jepsen_like.scenarios.script import SEPARATOR, Block, Command, Script, ScriptError
from jepsen_like.sim.time.virtual_time import EventsSpent
from jepsen_like.sim.violation import Crash, Stuck, Violation

__all__ = ["is_schedule", "parse_schedule", "play_schedule"]

_INDENT = "    "


def is_schedule(text: str) -> bool:
    """A scenario starts a number of nodes, a schedule what has a name."""
    commands = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    words = commands[0].split() if commands else []
    return len(words) > 1 and words[0] == "start" and not words[1].isdecimal()


def parse_schedule(name: str, text: str) -> Script:
    """Raises ScriptError."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("# "):
        raise ScriptError(name, 1, "a schedule begins with a comment: `# ` and what happens in it")
    blocks: list[Block] = []
    before: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            before.append(lines[at])
            at += 1
            continue
        block, at = _block(lines, at, tuple(before))
        if not block.commands:
            raise ScriptError(name, at, f"no command stands above `{SEPARATOR}`")
        blocks.append(block)
        before = []
    if not blocks:
        raise ScriptError(name, len(lines), "there is no command")
    title = lines[0].removeprefix("# ").partition(". ")[0].removesuffix(".")
    return Script(name=name, title=title, blocks=tuple(blocks), after=tuple(before))


def _block(lines: list[str], at: int, before: tuple[str, ...]) -> tuple[Block, int]:
    commands: list[Command] = []
    output: list[str] = []
    while at < len(lines) and lines[at].strip() and lines[at] != SEPARATOR:
        commands.append(Command(line=at + 1, text=lines[at].rstrip()))
        at += 1
    if at < len(lines) and lines[at] == SEPARATOR:
        at += 1
        while at < len(lines) and lines[at].strip():
            output.append(lines[at])
            at += 1
    return Block(before=before, commands=tuple(commands), output=tuple(output)), at


def play_schedule(script: Script, *, is_judged: bool = True) -> Played:
    """A run that is not judged goes on when an invariant is broken. Raises ScriptError."""
    return _Performance(script, is_judged=is_judged).play()


class _Performance:
    def __init__(self, script: Script, *, is_judged: bool) -> None:
        self._script = script
        self._production = Production(is_judged=is_judged)
        self._directed: Directed | None = None
        self._kind = ""
        self._told = 0  # steps of the production
        self._failures: list[str] = []

    def play(self) -> Played:
        outputs = []
        for block in self._script.blocks:
            lines: list[str] = []
            for command in _in_turn(self._script.name, block.commands):
                if self._failures:
                    break
                lines += self._carry_out(command)
            outputs.append(tuple(lines))
        return Played(script=self._script, outputs=tuple(outputs), failures=tuple(self._failures))

    def _carry_out(self, command: Command) -> Iterator[str]:
        broken = ""
        try:
            self._act(command.text)
        except Misused as misused:
            raise ScriptError(self._script.name, command.line, str(misused)) from misused
        except KeyError as error:
            problem = f"`{command.text}`: there is no {error}"
            raise ScriptError(self._script.name, command.line, problem) from error
        except (Violation, Stuck, Crash) as error:
            broken = f"broken: {error}"
        except EventsSpent as spent:
            broken = f"broken: no end after {spent} events"
        steps_now, self._told = self._production.steps[self._told :], len(self._production.steps)
        lines = [f"{step.at_ms:>6} ms  {step.what}" for step in steps_now]
        if self._directed is not None:
            told = {step.what for step in steps_now}
            lines += [line for line in self._directed.story.take() if line not in told]
        if broken:
            self._failures.append(broken)
            lines.append(broken)
        return iter(lines)

    def _act(self, text: str) -> None:
        if self._directed is not None:
            carry_out(self._directed, self._kind, text)
            return
        self._kind, settings = started(text)
        try:
            self._directed = SIMULATED[self._kind](self._production, **settings)
        except TypeError as error:
            raise Misused(f"`{text}` cannot be started: {error}") from error


def _in_turn(name: str, commands: tuple[Command, ...]) -> Iterator[Command]:
    """What is repeated, and the steps that are elsewhere, each with the line that says so."""
    waiting = list(commands)
    while waiting:
        command = waiting.pop(0)
        times = repeated(command.text)
        if times is not None:
            inner: list[Command] = []
            while waiting and waiting[0].text.startswith(_INDENT):
                each = waiting.pop(0)
                inner.append(Command(line=each.line, text=each.text.strip()))
            for _ in range(times):
                yield from _in_turn(name, tuple(inner))
        elif command.text.startswith("do "):
            try:
                found = steps(command.text)
            except Misused as misused:
                raise ScriptError(name, command.line, str(misused)) from misused
            yield from (Command(line=command.line, text=text) for text in found)
        else:
            yield command
