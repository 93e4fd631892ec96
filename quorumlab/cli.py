"""The `quorumlab` command: which verbs there are, and how each error reaches the user.

Exit codes: 0 fine, 1 error, 2 usage, 3 unhealthy, 4 a check was violated, 5 verdict unknown.
"""

import argparse
import gc
import io
import sys
from collections.abc import Mapping, Sequence

from quorumlab import __version__
from quorumlab.arguments import Parser, Verbs, add_verbs, did_you_mean
from quorumlab.interrupts import sigterm_as_ctrl_c
from quorumlab.own_packages import foreign, overwritten
from quorumlab.verb_errors import Failed, UsageError

__all__ = ["EXTRAS", "main"]

ERROR, USAGE, INTERRUPTED = 1, 2, 130

VERBS: Verbs = {
    "up": ("start a local cluster, and watch it until Ctrl-C", "up"),
    "down": ("stop the cluster in --dir", "down"),
    "status": ("describe the cluster in --dir", "status"),
    "node-stop": ("stop one node of --dir in good order", "nodes:add_stop_options"),
    "node-start": (
        "start one node of --dir, and wait until it is ready",
        "nodes:add_start_options",
    ),
    "node-kill": ("kill one node of --dir with SIGKILL", "nodes:add_kill_options"),
    "node": ("run one node in the foreground", "node"),
    "format": ("prepare the data directories of a node", "format"),
    "topics": ("create, list, describe, delete and alter topics", "topics"),
    "quorum": ("describe the metadata quorum, change its voters", "quorum"),
    "chaos": ("break things on purpose, and judge what is seen", "chaos"),
    "check": ("judge a history: valid, violated or undecided, and why", "check"),
    "bench": ("run the benchmarks: one JSON line a figure", "bench"),
    "compare": ("the designs side by side, under the same failure", "compare"),
    "demo": ("watch a cluster survive two kills (under 45 s)", "demo"),
    "inspect": ("look into a metadata log, ours or Kafka's", "inspect"),
    "doctor": ("what is wrong with a cluster? Reads only", "doctor"),
}

# module -> its error, whose message is all that the user is told
ERRORS = {
    "jepsen_like.real.layout": "ClusterError",
    "quorum.core.storage": "StorageError",
    "quorumlab.zk_config": "ConfigError",
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
            if told := foreign():
                return _fail(told)
            return _main(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # at any moment, also while a verb's modules are being loaded
        return INTERRUPTED
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and package in EXTRAS:
            from jepsen_like.installation import install_command

            return _fail(f"{package} is missing: {install_command(EXTRAS[package])} brings it")
        if told := overwritten(error):
            return _fail(told)
        raise


def _main(given: list[str]) -> int:
    verb = next((word for word in given if not word.startswith("-")), None)
    if verb is not None and verb not in VERBS:
        return _complain(
            f"no verb {verb!r}: {did_you_mean(verb, VERBS)}`quorumlab --help` lists them"
        )
    if verb == "inspect":
        from quorumlab.verbs.inspect import with_default_verb

        given = with_default_verb(given)
    parser = _parser()
    gc.disable()  # a verb's modules stay: looking for garbage in them takes a quarter of the start
    try:
        args, unknown = parser.parse_known_args(given)
        if unknown:
            parser.refuse_unknown(given, unknown)
    except SystemExit as stop:  # the parser has printed what is wrong, or the help
        return stop.code if isinstance(stop.code, int) else USAGE
    finally:
        gc.freeze()
        gc.enable()
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


def _fail(text: str) -> int:
    print(f"quorumlab: {text}", file=sys.stderr)
    return ERROR


def _run(args: argparse.Namespace) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an ASCII terminal gets what it can show
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = args.run(args)
        return code
    except UsageError as error:
        return _complain(str(error))
    except Failed as error:
        return _fail(str(error))
    except _imported(ERRORS) as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader of our output went away: `quorumlab … | head`
        _drop_output()
        return 0
    except OSError as error:  # a full disk, a file that is gone
        code = _fail(str(error))
        _drop_output()
        return code


def _imported(classes: Mapping[str, str]) -> tuple[type[Exception], ...]:
    """An error of a module that nobody has imported cannot have been raised."""
    there = {module: name for module, name in classes.items() if module in sys.modules}
    return tuple(getattr(sys.modules[module], name) for module, name in there.items())


def _drop_output() -> None:
    from quorumlab.output import drop_what_is_buffered

    drop_what_is_buffered(sys.stdout)


class _VerbsInOneColumn(argparse.HelpFormatter):
    """argparse forgets the indentation of verbs, and breaks the line behind the longest of them."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = max(map(len, VERBS)) + 2 * self._indent_increment


def _parser() -> Parser:
    parser = Parser(
        prog="quorumlab",
        description="Kafka-protocol clusters on a self-managed metadata quorum.",
        formatter_class=_VerbsInOneColumn,
        epilog="`quorumlab VERB --help` lists the options of a verb.",
    )
    parser.add_argument("--version", action="version", version=f"quorumlab {__version__}")
    add_verbs(parser.add_subparsers(metavar="VERB"), VERBS)
    return parser
