"""The `quorumlab` command: which verbs there are, and how each error reaches the user.

Exit codes: 0 fine, 1 error, 2 usage, 3 unhealthy, 4 a check was violated, 5 verdict unknown.
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from quorumlab import __version__
from quorumlab.arguments import Failed, Parser, UsageError, Verbs, did_you_mean, loading_modules
from quorumlab.interrupts import sigterm_as_ctrl_c

__all__ = ["EXTRAS", "INTERRUPTED", "VERBS", "foreign", "main", "overwritten"]

ERROR, USAGE, INTERRUPTED = 1, 2, 130

VERBS: Verbs = {
    "up": ("start a local cluster, and watch it until Ctrl-C", "up"),
    "down": ("stop the cluster in --dir", "nodes:add_down_options"),
    "status": ("describe the cluster in --dir", "status"),
    "node-stop": ("stop one node of --dir in good order", "nodes:add_stop_options"),
    "node-start": (
        "start one node of --dir, and wait until it is ready",
        "nodes:add_start_options",
    ),
    "node-kill": ("kill one node of --dir with SIGKILL", "nodes:add_kill_options"),
    "node": ("run one node in the foreground", "run_node"),
    "format": ("prepare the data directories of a node", "format"),
    "topics": ("create, list, describe, delete and alter topics", "topics"),
    "produce": ("write lines to a topic as records", "client_options:add_produce_options"),
    "consume": ("read the records of a topic", "client_options:add_consume_options"),
    "groups": ("list, describe and delete consumer groups", "client_options:add_groups_options"),
    "quorum": ("describe the metadata quorum, change its voters", "quorum"),
    "chaos": (
        "break things on purpose, and judge what is seen",
        {
            "run": ("break a cluster of real processes, and judge what clients saw", "chaos_run"),
            "report": ("many runs over all kinds of faults, and a page about them", "chaos_report"),
            "export": ("write a history as EDN or JSON lines", "chaos_history:add_export_options"),
            "museum": (
                "known failures of Apache Kafka, red and green",
                "chaos_options:add_museum_options",
            ),
            "scenario": (
                "the protocol as text: commands, and what comes of each",
                "chaos_options:add_scenario_options",
            ),
            "sim": ("run seeds on virtual time", "chaos_options:add_sim_options"),
            "replay": (
                "do a simulated run again, with the same digest",
                "chaos_options:add_replay_options",
            ),
            "shrink": (
                "the smallest simulated run that still fails",
                "chaos_options:add_shrink_options",
            ),
            "timeline": (
                "a history as lanes of processes and bands of faults",
                "chaos_history:add_timeline_options",
            ),
        },
    ),
    "check": ("judge a history: valid, violated or undecided, and why", "check"),
    "bench": ("run the benchmarks: one JSON line a figure", "bench"),
    "compare": ("the designs side by side, under the same failure", "compare"),
    "demo": ("watch a cluster survive two kills (under 45 s)", "up:add_demo_options"),
    "inspect": ("look into a metadata log, ours or Kafka's", "inspect"),
    "doctor": ("what is wrong with a cluster? Reads only", "doctor"),
}

# module -> its error, whose message is all that the user is told
ERRORS = {
    "jepsen_like.real.layout": "ClusterError",
    "quorum.core.storage": "StorageError",
    "quorumlab.mode_config": "ConfigError",
}

# package -> the extra that brings it: only some verbs need these
EXTRAS = {
    "confluent_kafka": "demo",
    "kazoo": "zk",
    "pandas": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}
# Our names are common words at the top level: a file of the user's on PYTHONPATH, or another
# distribution, may have one of them. None of these is imported here, for it might not be ours.
_NAMES = ("wire", "quorum", "controller", "broker", "jepsen_like", "spark")
_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


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
        near = did_you_mean(verb, VERBS)
        return _fail(f"no verb {verb!r}: {near}`quorumlab --help` lists them", USAGE)
    if verb == "inspect":
        from quorumlab.verbs.inspect import with_default_verb

        given = with_default_verb(given)
    parser = _parser()
    try:
        with loading_modules():
            args, unknown = parser.parse_known_args(given)
            if unknown:
                parser.refuse_unknown(given, unknown)
    except SystemExit as stop:  # the parser has printed what is wrong, or the help
        return stop.code if isinstance(stop.code, int) else USAGE
    if not __debug__:
        return _fail("assertions are part of the protocol; do not use -O", USAGE)
    if "run" not in args:
        parser.print_help()
        return USAGE
    return _run(args)


def _fail(text: str, code: int = ERROR) -> int:
    print(f"quorumlab: {text}", file=sys.stderr)
    return code


def _run(args: argparse.Namespace) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an ASCII terminal gets what it can show
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = args.run(args)
        return code
    except UsageError as error:
        return _fail(str(error), USAGE)
    except _known_errors() as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader of our output went away: `quorumlab … | head`
        _drop_output()
        return 0
    except OSError as error:  # a full disk, a file that is gone
        code = _fail(str(error))
        _drop_output()
        return code


def _known_errors() -> tuple[type[Exception], ...]:
    """An error of a module that nobody has imported cannot have been raised."""
    there = {module: name for module, name in ERRORS.items() if module in sys.modules}
    return (Failed, *(getattr(sys.modules[module], name) for module, name in there.items()))


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
    parser.add_verbs(VERBS, metavar="VERB")
    return parser


# --- foreign packages with the names of ours ------------------------------------------------


def foreign(names: Sequence[str] = _NAMES) -> str:
    """Names what Python finds in the place of one of our packages; empty if all are ours."""
    for name in names:
        spec = find_spec(name)
        if spec is None:
            continue
        # A directory without `__init__.py` has no origin.
        place = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
        if place and os.path.realpath(place) != os.path.join(_ROOT, name, "__init__.py"):
            return (
                f"Python finds {place} in the place of quorumlab's package {name}: rename it, "
                "take its directory off PYTHONPATH, or install quorumlab into a virtual "
                "environment of its own"
            )
    return ""


def overwritten(error: ImportError) -> str:
    """Names the package of ours that another distribution has put files into; empty if none."""
    name = (error.name or "").partition(".")[0]
    if name not in _NAMES or os.path.exists(os.path.join(_ROOT, "pyproject.toml")):
        return ""
    return (
        f"{error}: another distribution has a package {name}, too, and its files are among ours in "
        f"{os.path.join(_ROOT, name)}: install quorumlab into a virtual environment of its own"
    )
