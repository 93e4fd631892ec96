"""The parser of command lines: a refusal is one line, which names the nearest known word.

Each verb decides what its options mean. argparse itself prints the whole usage before every
complaint, which hides it.

A verb's module is imported once a command line names the verb. A node, of which six may start at a
time, does not pay for the checkers of histories, and the list of verbs pays for no verb.
"""

import argparse
import difflib
import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

__all__ = [
    "Failed",
    "Parser",
    "UsageError",
    "Verbs",
    "declare",
    "did_you_mean",
    "later",
    "loading_modules",
]

# Verb -> what the list of verbs says of it, and its actions, or else the module of
# `quorumlab.verbs` that adds its options: by `add_options`, or by a function named behind a colon.
Verbs = Mapping[str, "tuple[str, str | Verbs]"]

_USAGE = 2
_HELP = ("-h", "--help")  # is named anyway


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question that names the nearest known word; empty if none is near."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]!r}? " if close else ""


@contextmanager
def loading_modules() -> Iterator[None]:
    """Modules of a verb stay: looking for garbage in them takes a quarter of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def positive(text: str) -> float:
    """A type for `add_argument`: a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


# --- options as a table ----------------------------------------------------------------------

_TYPES: Mapping[str, Callable[[str], object]] = {"int": int, "positive": positive}
_OF_METAVARS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("N", "P", "MS", "MB"), int),
    **dict.fromkeys(("D", "DIR", "FILE"), Path),
}


def declare(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
    table: str,
    about: str | None = None,
    **types: Callable[[str], object],
) -> None:
    """Gives a verb what it runs, its description, and the options and words of a table.

        --name METAVAR [marks]  help
        -r/--recursive  help                    without a METAVAR it is a flag
        --on local|spark  help                  small words with bars are choices
        target TARGET [?]  help                 a word of the command line
        | --edn FILE  help                      one of several options, which exclude each other
        |! --edn FILE  help                     one of them must be given

    Marks: `!` is required, `*` may be given again, `?`, `*` and `+` say how many words, the name of
    a type (`int`, `positive`, or one of `types`) converts, and anything else is the default. Some
    metavars have a type of their own: N is a whole number, DIR and FILE are paths.
    """
    parser.description = about or parser.description
    parser.set_defaults(run=run)
    group: argparse._ActionsContainer = parser
    for line in table.strip().splitlines():
        spec, _, told = line.strip().partition("  ")
        bar, spec = spec.split(" ", 1) if spec.startswith("|") else ("", spec)
        if not bar:
            group = parser
        elif group is parser:
            group = parser.add_mutually_exclusive_group(required=bar == "|!")
        spec, _, marks = spec.removesuffix("]").partition(" [")
        names, _, metavar = spec.partition(" ")
        how = _how(names, metavar, marks.split(), types)
        group.add_argument(*names.split("/"), help=" ".join(told.split()) or None, **how)


def _how(
    names: str, metavar: str, marks: list[str], types: Mapping[str, Callable[[str], object]]
) -> dict[str, Any]:
    if not metavar:
        return {"action": "store_true"}
    is_choice = "|" in metavar and metavar.islower()
    how: dict[str, Any] = {"choices": metavar.split("|")} if is_choice else {"metavar": metavar}
    kind = _OF_METAVARS.get(metavar)
    for mark in marks:
        if mark == "!":
            how["required"] = True
        elif mark == "*" and names.startswith("-"):
            how |= {"action": "append", "default": []}
        elif mark in ("?", "*", "+"):
            how["nargs"] = mark
        elif mark in types or mark in _TYPES:
            kind = types.get(mark) or _TYPES[mark]
        else:
            assert "default" not in how, (names, marks)  # a type that is misspelt is none
            how["default"] = mark if kind is None else kind(mark)
    return how if kind is None else {**how, "type": kind}


def later(function: str) -> Callable[[argparse.Namespace], int]:
    """`module:function` of `quorumlab.verbs`, imported once a command line is understood.

    A user who asks for help, or has misspelt an option, does not wait for what is slow to load.
    """

    def run(args: argparse.Namespace) -> int:
        module, _, name = function.partition(":")
        with loading_modules():
            found = import_module(f"quorumlab.verbs.{module}")
        code: int = getattr(found, name)(args)
        return code

    return run


class Parser(argparse.ArgumentParser):
    """The parsers of its verbs are of the same kind. `options` is as in `Verbs`."""

    def __init__(self, *args: Any, options: "str | Verbs" = "", **named: Any) -> None:
        super().__init__(*args, **named)
        self._options = options

    def add_verbs(self, verbs: Verbs, **named: Any) -> None:
        actions = self.add_subparsers(**named)
        for name, (about, options) in verbs.items():
            actions.add_parser(name, help=about, options=options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        options, self._options = self._options, ""
        if not isinstance(options, str):
            self.add_verbs(options, required=True, metavar="ACTION")
        elif options:
            module, _, function = options.partition(":")
            getattr(import_module(f"quorumlab.verbs.{module}"), function or "add_options")(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        there = [name for action in self._verb_actions() for name in action.choices]
        if message.startswith("the following arguments are required") and there:
            message += f"; there are {', '.join(there)}"
        self.complain(message.removeprefix("argument "))

    def complain(self, message: str) -> NoReturn:
        asked = self.prog.removeprefix("quorumlab").strip()
        about = f"{asked}: " if asked else ""
        end = "" if message.endswith("?") else ":"
        self.exit(_USAGE, f"quorumlab: {about}{message}{end} see `{self.prog} --help`\n")

    def refuse_unknown(self, given: list[str], unknown: list[str]) -> NoReturn:
        """`unknown` of the words `given`; the verb that they name last is asked."""
        for at, word in enumerate(given):
            for verbs in self._verb_actions():
                if word in verbs.choices:
                    verbs.choices[word].refuse_unknown(given[at + 1 :], unknown)
        options = [name for name in self._option_string_actions if name not in _HELP]
        nearest = did_you_mean(unknown[0].partition("=")[0], options)
        self.complain(f"unknown {' '.join(unknown)}: {nearest}".rstrip(": "))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a choice in the words of our own refusals."""
        known = action.choices
        if known is None or value in known:
            return
        names = [str(each) for each in known]
        raise argparse.ArgumentError(
            action,
            f"no {str(value)!r}: {did_you_mean(str(value), names)}there are {', '.join(names)}",
        )

    def _verb_actions(self) -> "Iterator[argparse._SubParsersAction[Parser]]":
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield action


class Failed(Exception):
    """The verb has failed, and its message says all: exit code 1."""


class UsageError(Exception):
    """The command line asks for something that cannot be: exit code 2."""
