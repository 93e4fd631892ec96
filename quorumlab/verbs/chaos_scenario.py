"""`quorumlab chaos scenario [SCENARIO …]`: the protocol as text, played by the simulator.

Exit codes: 0 what came is what the file says, 1 the file cannot be read or written, 2 a line of it
cannot be understood, 4 what came differs: the difference is printed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.planted.every_bug import EVERY_PLANT, planted
from jepsen_like.scenarios.language.script import Script, ScriptError, names, parse, scenario
from jepsen_like.scenarios.performance import Played, play
from jepsen_like.scenarios.schedules import ALL_SCHEDULES, HARM, schedule_text, vocabulary
from quorumlab.arguments import Failed, UsageError, did_you_mean
from quorumlab.folding import fits
from quorumlab.output import complain, print_rows, say, say_folded
from quorumlab.verbs.common import one_of

__all__ = ["run"]

_FILLED = 88  # columns: a shorter line of a comment ends its paragraph
_PROSE = re.compile("# (?!Source:|Finds:)")
EXIT_OK = 0
EXIT_DIFFERS = 4
_ALL = "all"


def run(args: SimpleNamespace) -> int:
    if args.commands:
        print_rows(vocabulary(), ("for", "write", "meaning"))
        return EXIT_OK
    if not args.scenario:
        return _list()
    if args.rewrite and args.plant:
        raise UsageError("--rewrite writes what the shipped rules do: leave out --plant")
    if args.plant:
        one_of(EVERY_PLANT, "--plant", args.plant)
    try:
        if args.rewrite:
            return _rewrite([_path(name) for name in args.scenario])
        return _show([each for name in args.scenario for each in _scripts(name)], args.plant)
    except ScriptError as error:
        raise UsageError(str(error)) from error


def _list() -> int:
    shipped = [scenario(name) for name in names()]
    print_rows(
        ({"scenario": each.name.partition("-")[0], "title": each.title} for each in shipped),
        ("scenario", "title"),
    )
    say("")
    print_rows(
        (
            {"schedule": name, "finds": "; ".join(schedule.finds)}
            for name, schedule in {**ALL_SCHEDULES, **HARM}.items()
        ),
        ("schedule", "finds"),
    )
    say(f"\n`quorumlab chaos scenario {shipped[0].name[:2]}` plays that one")
    return EXIT_OK


# --- which ----------------------------------------------------------------------------------


def _scripts(name: str) -> list[Script]:
    shipped = names()
    if name == _ALL:
        return [scenario(each) for each in shipped]
    number = f"{int(name):02}" if name.isdecimal() else None
    wanted = [each for each in shipped if name == each or each.partition("-")[0] == number]
    if wanted:
        return [scenario(wanted[0])]
    text = schedule_text(name)
    return [_read(_path(name))] if text is None else [parse(f"{name}.txt", text)]


def _path(name: str) -> Path:
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"{name} is a directory: name a file in it")
    if not path.is_file():
        known = [*names(), *ALL_SCHEDULES, *HARM]
        near = "" if name in known else did_you_mean(name, known)
        what = f"no scenario {name}, and no such file"
        raise UsageError(f"{what}: {near}`quorumlab chaos scenario` lists")
    return path


def _read(path: Path) -> Script:
    try:
        return parse(str(path), path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise Failed(f"{path}: not UTF-8: {error}") from error


# --- played ---------------------------------------------------------------------------------


def _show(scripts: Sequence[Script], plant: str | None) -> int:
    """With a planted bug, first tells what it breaks, then how the scenario goes on regardless."""
    is_told = len(scripts) == 1
    differing = 0
    with planted(plant):
        for script in scripts:
            played = play(script, is_judged=not plant)
            differing += _tell(played, is_told=is_told)
            if plant:
                judged = play(script)
                _complain_of(judged)
                differing += bool(judged.failures)
    return EXIT_DIFFERS if differing else EXIT_OK


def _tell(played: Played, *, is_told: bool) -> bool:
    """Returns whether it differs from what the file says, or what it expects did not come.

    A schedule need not say what comes.
    """
    says_nothing = not any(block.output for block in played.script.blocks)
    is_open = says_nothing and played.script.is_schedule
    differences = [] if is_open else played.differences()
    if differences:
        for line in differences:
            say(line)
    elif is_told:
        _say_played(played.text)
    else:
        say_folded(f"{played.script.name}: {played.script.title}")
    _complain_of(played)
    return bool(differences or played.failures)


def _say_played(text: str) -> None:
    """A comment fills the terminal, its paragraphs stay what they are."""
    lines = text.rstrip("\n").split("\n")
    for line in lines if fits(lines) else _with_whole_paragraphs(lines):
        say_folded(line, "# " if line.startswith("# ") else None)


def _with_whole_paragraphs(lines: Iterable[str]) -> Iterator[str]:
    told, before = None, ""
    for line in lines:
        is_full = len(before) > _FILLED and before.startswith("# ")
        if told is not None and is_full and _PROSE.match(line):
            told += line[1:]
        else:
            if told is not None:
                yield told
            told = line
        before = line
    if told is not None:
        yield told


def _complain_of(played: Played) -> None:
    for failure in played.failures:
        complain(f"{played.script.name}: {failure}")


def _rewrite(paths: Sequence[Path]) -> int:
    differing = 0
    for path in paths:
        played = play(_read(path))
        if played.failures:
            differing += 1
            for failure in played.failures:
                complain(f"{path}: not written: {failure}")
        elif played.differences():
            path.write_text(played.text, encoding="utf-8")
            say(f"{path}: written")
    return EXIT_DIFFERS if differing else EXIT_OK
