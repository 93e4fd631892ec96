"""The command line, on click: a refusal is one line, which names the nearest known word.

Each verb declares its options as a table of text. Its help, the completion of shells and the man
page are made from that table; what the options mean is up to the verb.

A verb's module is imported once a command line names the verb. A node, of which six may start at a
time, does not pay for the checkers of histories, and the list of verbs pays for no verb.
"""

import gc
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource, augment_usage_errors

__all__ = [
    "Failed",
    "Tree",
    "UsageError",
    "Verb",
    "Verbs",
    "commands_of",
    "declare",
    "did_you_mean",
    "group",
    "loading_modules",
    "parse",
    "refusal",
]

# Verb -> what the list of verbs says of it, and its own verbs, or else the module of
# `quorumlab.verbs` whose VERBS have it: made already, or as the text that `declared` takes.
Tree = Mapping[str, "tuple[str, str | Tree]"]
Run = Callable[[SimpleNamespace], int]

_WIDTH = 80
_HELP = {"help_option_names": ["-h", "--help"]}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question that names the nearest known word; empty if none is near."""
    from difflib import get_close_matches

    return _question(get_close_matches(word, list(known), n=1))


def _question(near: Sequence[str] | None) -> str:
    return f"did you mean {near[0]!r}? " if near else ""


@contextmanager
def loading_modules() -> Iterator[None]:
    """Modules of a verb stay: looking for garbage in them takes a quarter of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


# --- kinds of values --------------------------------------------------------------------------


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(f"{text!r} is no number above 0")
    return value


_TYPES: Mapping[str, Callable[[str], object]] = {"int": int, "positive": positive}
_OF_METAVARS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(("N", "P", "MS", "MB"), int),
    **dict.fromkeys(("D", "DIR", "FILE"), Path),
}
_COMPLETED = {"D": "dir", "DIR": "dir", "FILE": "file", "TARGET": "file"}


class _Kind(click.ParamType[object]):
    """What a value is converted by, which raises ValueError, and what a shell completes it to."""

    def __init__(self, of: Callable[[str], object], metavar: str) -> None:
        self.name = metavar
        self.of = of
        # A small word alone, as in `--watch spark`, is the only choice.
        self.choices = metavar.split("|") if metavar.islower() else []

    def convert(self, value: str, param: Any, ctx: click.Context | None) -> object:
        options = [name for each in ctx.command.params for name in each.opts] if ctx else []
        if isinstance(param, click.Option) and value.startswith("-") and value in options:
            self.fail(f"a value is missing before {value}", param, ctx)
        if self.choices and value not in self.choices:
            near = did_you_mean(value, self.choices)
            self.fail(f"no {value!r}: {near}there are {', '.join(self.choices)}", param, ctx)
        try:
            return self.of(value)
        except ValueError as error:
            told = f"{value!r} is no whole number" if self.of is int else str(error)
            self.fail(told, param, ctx)

    def shell_complete(self, ctx: click.Context, param: Any, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        if kind := _COMPLETED.get(self.name):
            return [CompletionItem(incomplete, type=kind)]
        return [CompletionItem(each) for each in self.choices if each.startswith(incomplete)]


# --- help -------------------------------------------------------------------------------------


class _Formatter(click.HelpFormatter):
    def write_heading(self, heading: str) -> None:
        super().write_heading(click.style(heading, bold=True))


class _Context(click.Context):
    formatter_class = _Formatter


class _WithExamples(click.Command):
    """A command that ends its help with examples: `$ words  what they do`, a line each."""

    context_class = _Context
    examples: Sequence[str]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Examples"):
            formatter.write("".join(f"{line}\n" for line in self.example_lines(ctx)))

    def example_lines(self, ctx: click.Context) -> Iterator[str]:
        for example in self.examples:
            words, _, told = example.partition("  ")
            if told:
                yield f"  # {' '.join(told.split())}"
            line = f"  {ctx.command_path}{words.removeprefix('$')}"
            while len(line) > _WIDTH and (at := line.rfind(" --", 0, _WIDTH - 1)) > 0:
                yield f"{line[:at]} \\"
                line = f"     {line[at:]}"
            yield line


class Verb(_WithExamples):
    """What a command line runs; parsed, it is a namespace with the function `run`."""

    def __init__(self, run: Run, about: str | None, examples: Sequence[str]) -> None:
        super().__init__(None, context_settings={**_HELP, "allow_extra_args": True}, help=about)
        self.run, self.examples = run, examples
        self.defaults: dict[str, object] = {}
        self.exclusive: list[tuple[bool, list[str]]] = []  # is one needed? Of which options?

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with augment_usage_errors(ctx):  # click's parser does not say whose option it is
            super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            raise click.UsageError(f"unknown {' '.join(ctx.args)}", ctx)
        for is_needed, names in () if ctx.resilient_parsing else self.exclusive:
            given = [name for name in names if _is_given(ctx, name[2:].replace("-", "_"))]
            if len(given) > 1:
                raise click.UsageError(f"give {given[0]} or {given[1]}, not both", ctx)
            if is_needed and not given:
                raise click.UsageError(f"give one of {', '.join(names)}", ctx)
        return ctx.args

    def invoke(self, ctx: click.Context) -> SimpleNamespace:
        given = {name: value for name, value in ctx.params.items() if _is_given(ctx, name)}
        lists = {name: [*value] for name, value in given.items() if isinstance(value, tuple)}
        return SimpleNamespace(**{**self.defaults, **given, **lists, "run": self.run})


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


class Verbs(click.Group, _WithExamples):
    """Verbs in the order in which they are listed: name, or name/other name -> verb.

    `about` says what they are, and then has a line for each example.
    """

    def __init__(self, about: str, verbs: Mapping[str, click.Command]) -> None:
        told, *self.examples = [line.strip() for line in about.splitlines()]
        commands = {name: verb for names, verb in verbs.items() for name in names.split("/")}
        super().__init__(None, commands, help=_sentence(told), context_settings=_HELP)
        self.short_help, self.subcommand_metavar = told, "VERB ..."
        self.listed = [names.partition("/")[0] for names in verbs]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self.listed

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(f"VERB is missing; there are {', '.join(self.listed)}", ctx)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(
                [(name, self.commands[name].short_help or "") for name in self.listed]
            )


class _Later(click.Command):
    """A verb whose module is imported once a command line names it."""

    def __init__(self, name: str, about: str, module: str) -> None:
        super().__init__(None, short_help=about)
        self._place = f"quorumlab.verbs.{module}", name

    def make_context(self, *args: Any, **named: Any) -> click.Context:
        module, name = self._place
        found: str | click.Command = import_module(module).VERBS[name]
        verb = declared(found) if isinstance(found, str) else found
        verb.help = verb.help or _sentence(self.short_help)
        return verb.make_context(*args, **named)


def _sentence(told: str | None) -> str:
    return f"{told[:1].upper()}{told[1:].removesuffix('.')}." if told else ""


def commands_of(verbs: Tree) -> dict[str, click.Command]:
    return {
        name: _Later(name, about, inner)
        if isinstance(inner, str)
        else Verbs(about, commands_of(inner))
        for name, (about, inner) in verbs.items()
    }


# --- options as a table ----------------------------------------------------------------------


def group(about: str, verbs: Mapping[str, str]) -> Verbs:
    return Verbs(about, {names: declared(text) for names, text in verbs.items()})


def declared(text: str) -> Verb:
    """The first line is what the verb runs and, behind two spaces, what a list of verbs says of it;
    then comes the table."""
    head, _, table = text.partition("\n")
    run, _, told = head.partition("  ")
    return declare(run, table, told=told or None)


def declare(
    run: Run | str, table: str, *, told: str | None = None, **types: Callable[[str], object]
) -> Verb:
    """A verb: what it runs, and the options, the words and the examples of a table.

        What the verb does, if the list of verbs does not say all of it.

        --name METAVAR [marks]  help
        -r/--recursive  help                    without a METAVAR it is a flag
        --on local|spark  help                  small words with bars are choices
        target TARGET [?]  help                 a word of the command line
        | --edn FILE  help                      one of several options, which exclude each other
        |! --edn FILE  help                     one of them must be given
        $ --on spark DIR  what it does          an example, without the name of the verb

    Marks: `!` is required, `*` may be given again, `?`, `*` and `+` say how many words, the name of
    a type (`int`, `positive`, or one of `types`) converts, and anything else is the default. Some
    metavars have a type of their own: N is a whole number, DIR and FILE are paths. `told` is what a
    list of verbs says. `run` may be
    `module:function` of `quorumlab.verbs`, imported once the command line is understood: a user who
    asks for help, or has misspelt an option, does not wait for what is slow to load.
    """
    about, blank, rest = table.partition("\n\n")
    lines = [line.strip() for line in (rest if blank else table).strip().splitlines()]
    examples = [line for line in lines if line.startswith("$")]
    more = " ".join(about.split()) if blank else _sentence(told)
    verb = Verb(_later(run) if isinstance(run, str) else run, more, examples)
    verb.short_help = told
    bar = ""
    for line in (line for line in lines if line and line not in examples):
        spec, _, told = line.partition("  ")
        before, (bar, spec) = bar, spec.split(" ", 1) if line.startswith("|") else ("", spec)
        param, default = _param(spec, " ".join(told.split()), types)
        verb.params.append(param)
        verb.defaults[param.name] = default
        if bar and not before:
            verb.exclusive.append((bar == "|!", []))
        if bar:
            verb.exclusive[-1][1].append(param.opts[-1])
    return verb


def _param(
    spec: str, told: str, types: Mapping[str, Callable[[str], object]]
) -> tuple[click.Parameter, object]:
    """And its default."""
    spec, _, marks = spec.removesuffix("]").partition(" [")
    names, _, metavar = spec.partition(" ")
    if not metavar:
        return click.Option(names.split("/"), is_flag=True, help=told), False
    words, known = {*marks.split()}, {**_TYPES, **types}
    of = next((known[word] for word in words if word in known), _OF_METAVARS.get(metavar, str))
    defaults = [*words.difference(known, "!?*+")]
    assert len(defaults) < 2, (names, marks)  # a type that is misspelt is none
    default = of(defaults[0]) if defaults else [] if "*" in words else None
    how: dict[str, Any] = {"type": _Kind(of, metavar), "help": told}
    if names.startswith("-"):
        how |= {"metavar": metavar, "required": "!" in words, "multiple": "*" in words}
        return click.Option(names.split("/"), **how), default
    if words.intersection("?*"):
        how["required"], metavar = False, f"[{metavar}]"
    if words.intersection("*+"):
        how["nargs"], metavar = -1, f"{metavar}..."
    return click.Argument([names], metavar=metavar, **{"required": True, **how}), default


def _later(function: str) -> Run:
    def run(args: SimpleNamespace) -> int:
        module, _, name = function.partition(":")
        with loading_modules():
            found = import_module(f"quorumlab.verbs.{module}")
        code: int = getattr(found, name)(args)
        return code

    return run


# --- parsing ----------------------------------------------------------------------------------


def parse(command: click.Command, given: Sequence[str]) -> SimpleNamespace:
    """Raises click's UsageError, and its Exit once it has printed what was asked for."""
    colour = False if os.environ.get("NO_COLOR") else None
    with loading_modules(), command.make_context("quorumlab", [*given], color=colour) as context:
        args: SimpleNamespace = context.command.invoke(context)
        return args


def refusal(error: click.UsageError) -> str:
    """What is wrong with the command line, and where its help is, in one line."""
    path = error.ctx.command_path if error.ctx else "quorumlab"
    end = f"see `{path} --help`"
    match error:
        case click.NoSuchOption():
            near = [name for name in error.possibilities or () if name != "--help"]  # named anyway
            told = f"unknown {error.option_name}: {_question(near)}"
        case click.exceptions.NoSuchCommand():
            told = f"no verb {error.command_name!r}: {_question(error.possibilities)}"
            end = f"`{path} --help` lists them"
        case click.MissingParameter():
            told = f"{_name_of(error.param)} is missing: "
        case click.BadParameter():
            told = f"{_name_of(error.param)}: {error.message}: "
        case _:
            told = f"{error.message.removesuffix('.')}: "
    return f"{path.removeprefix('quorumlab').strip()}: {told}{end}".removeprefix(": ")


def _name_of(param: click.Parameter | None) -> str:
    assert param is not None
    return (
        param.human_readable_name.strip("[].") if "-" not in param.opts[-1][:1] else param.opts[-1]
    )


class Failed(Exception):
    """The verb has failed, and its message says all: exit code 1."""


class UsageError(Exception):
    """The command line asks for something that cannot be: exit code 2."""
