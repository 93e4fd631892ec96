"""The `quorumlab` command: which verbs there are, and how each error reaches the user.

Exit codes: 0 fine, 1 error, 2 usage, 3 unhealthy, 4 a check was violated, 5 verdict unknown.
"""

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence

from quorumlab.arguments import Parser, did_you_mean
from quorumlab.children import sigterm_as_ctrl_c

__all__ = ["EXTRAS", "main"]

ERROR, USAGE, INTERRUPTED = 1, 2, 130

# verb -> the module that has it. Only the module of the verb that is asked for is imported:
# `node` starts six at a time, and should not pay for the others.
VERBS = {
    "up": "up",
    "down": "down",
    "status": "status",
    "node-stop": "nodes",
    "node-start": "nodes",
    "node-kill": "nodes",
    "node": "node",
    "format": "format",
    "topics": "topics",
    "quorum": "quorum",
    "chaos": "chaos",
    "check": "check",
    "bench": "bench",
    "compare": "compare",
    "demo": "demo",
    "inspect": "inspect",
    "doctor": "doctor",
}

# package -> the extra that brings it: only some verbs need these
EXTRAS = {
    "confluent_kafka": "demo",
    "kazoo": "zk",
    "pandas": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        with sigterm_as_ctrl_c():  # both end what a verb has begun, where it has no better way
            return _main(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # at any moment, also while a verb's modules are being loaded
        return INTERRUPTED
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        install = f"pip install -e '.[{EXTRAS[package]}]'"
        print(f"quorumlab: {package} is missing: `{install}` in the clone", file=sys.stderr)
        return ERROR


def _main(given: list[str]) -> int:
    verb = next((word for word in given if not word.startswith("-")), None)
    if verb is not None and verb not in VERBS:
        return _complain(
            f"no verb {verb!r}: {did_you_mean(verb, VERBS)}`quorumlab --help` lists them"
        )
    if verb == "inspect":
        from quorumlab.verbs.inspect import with_default_verb

        given = with_default_verb(given)
    parser = _parser(verb)
    try:
        args, unknown = parser.parse_known_args(given)
        if unknown:
            parser.refuse_unknown(given, unknown)
    except SystemExit as stop:  # the parser has printed what is wrong, or the help
        return stop.code if isinstance(stop.code, int) else USAGE
    if not __debug__:
        print("quorumlab: assertions are part of the protocol; do not use -O", file=sys.stderr)
        return USAGE
    if "run" not in args:
        parser.print_help()
        return USAGE
    return _run(args)


def _complain(text: str) -> int:
    print(f"quorumlab: {text}", file=sys.stderr)
    return USAGE


def _run(args: argparse.Namespace) -> int:
    from jepsen_like.real.layout import ClusterError
    from quorum.storage.contract import StorageError
    from quorumlab.config import ConfigError
    from quorumlab.verbs.common import Failed, UsageError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an ASCII terminal gets what it can show
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = args.run(args)
        return code
    except UsageError as error:
        return _complain(str(error))
    except (ClusterError, ConfigError, Failed, StorageError) as error:
        print(f"quorumlab: {error}", file=sys.stderr)
        return ERROR
    except BrokenPipeError:  # the reader of our output went away: `quorumlab … | head`
        _let_go_of_stdout()
        return 0
    except OSError as error:  # a full disk, a file that is gone
        print(f"quorumlab: {error}", file=sys.stderr)
        _let_go_of_stdout()
        return ERROR


def _let_go_of_stdout() -> None:
    """What is buffered and cannot be written is not tried again at the exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _VerbsInOneColumn(argparse.HelpFormatter):
    """argparse forgets the indentation of verbs, and breaks the line behind the longest of them."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = max(map(len, VERBS)) + 2 * self._indent_increment


def _parser(verb: str | None) -> Parser:
    """With the options of one verb, or of all."""
    from quorumlab import __version__

    parser = Parser(
        prog="quorumlab",
        description="Kafka-protocol clusters on a self-managed metadata quorum.",
        formatter_class=_VerbsInOneColumn,
        epilog="`quorumlab VERB --help` lists the options of a verb.",
    )
    parser.add_argument("--version", action="version", version=f"quorumlab {__version__}")
    verbs = parser.add_subparsers(metavar="VERB")
    modules = [VERBS[verb]] if verb is not None else dict.fromkeys(VERBS.values())
    for name in modules:
        module = importlib.import_module(f"quorumlab.verbs.{name}")
        add = getattr(module, "add_parsers", None) or module.add_parser
        add(verbs)
    return parser
