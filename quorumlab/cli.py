"""The `quorumlab` command: which verbs there are, and how each error reaches the user.

Exit codes: 0 fine, 1 error, 2 usage, 3 unhealthy, 4 a check was violated, 5 verdict unknown.
"""

import io
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from types import SimpleNamespace

import click

from quorumlab import __version__
from quorumlab.arguments import Failed, Tree, UsageError, Verbs, commands_of, parse, refusal
from quorumlab.interrupts import sigterm_as_ctrl_c

__all__ = ["COMPLETE", "EXTRAS", "INTERRUPTED", "VERBS", "foreign", "main", "overwritten", "root"]

ERROR, USAGE, INTERRUPTED = 1, 2, 130
COMPLETE = "_QUORUMLAB_COMPLETE"  # click's name for the variable by which a shell asks

VERBS: Tree = {
    "up": ("start a local cluster, and watch it until Ctrl-C", "cluster_options"),
    "down": ("stop the cluster in --dir", "cluster_options"),
    "status": ("describe the cluster in --dir", "cluster_options"),
    "top": ("a live view of a cluster, ours or any Kafka's", "cluster_options"),
    "node-stop": ("stop one node of --dir in good order", "cluster_options"),
    "node-start": ("start one node of --dir, and wait until it is ready", "cluster_options"),
    "node-kill": ("kill one node of --dir with SIGKILL", "cluster_options"),
    "node": ("run one node in the foreground", "cluster_options"),
    "format": ("prepare the data directories of a node", "cluster_options"),
    "topics": ("create, list, describe, delete and alter topics", "admin_options"),
    "produce": ("write lines to a topic as records", "client_options"),
    "consume": ("read the records of a topic", "client_options"),
    "groups": ("list, describe and delete consumer groups", "client_options"),
    "users": ("add, list and delete users and their passwords", "security_options"),
    "acls": ("add, list and delete entries that say who may do what", "security_options"),
    "quorum": ("describe the metadata quorum, change its voters", "admin_options"),
    "chaos": (
        "break things on purpose, and judge what is seen\n"
        "$ run --faults kill --seconds 20  a cluster of real processes\n"
        "$ sim --sweep 100  a hundred seeds on virtual time\n"
        "$ museum B5  a known failure, and its mending",
        {
            "run": (
                "break a cluster of real processes, and judge what clients saw",
                "chaos_options",
            ),
            "report": (
                "many runs over all kinds of faults, and a page about them",
                "chaos_options",
            ),
            "export": ("write a history as EDN or JSON lines", "chaos_options"),
            "museum": ("known failures of Apache Kafka, red and green", "chaos_options"),
            "scenario": ("the protocol as text: commands, and what comes of each", "chaos_options"),
            "sim": ("run seeds on virtual time", "chaos_options"),
            "replay": ("do a simulated run again, with the same digest", "chaos_options"),
            "shrink": ("the smallest simulated run that still fails", "chaos_options"),
            "timeline": ("a history as lanes of processes and bands of faults", "chaos_options"),
        },
    ),
    "check": ("judge a history: valid, violated or undecided, and why", "judging_options"),
    "bench": ("run the benchmarks: one JSON line a figure", "judging_options"),
    "compare": ("the designs side by side, under the same failure", "judging_options"),
    "tour": ("ten minutes with everything real, step by step", "cluster_options"),
    "demo": ("watch a cluster survive two kills (under 45 s)", "cluster_options"),
    "inspect": ("look into a metadata log, ours or Kafka's", "inspect"),
    "doctor": ("what is wrong with a cluster? Reads only", "cluster_options"),
    "completion": ("completion for a shell, or a man page", "completion"),
}
_ABOUT = """Kafka-protocol clusters on a self-managed metadata quorum.
$ up --detach  three controllers and three brokers, in ./data
$ topics create orders --partitions 3
$ chaos run --faults kill --seconds 20  break a cluster, and judge what clients saw"""

# module -> its error, whose message is all that the user is told
ERRORS = {
    "jepsen_like.real.layout": "ClusterError",
    "quorum.core.storage": "StorageError",
    "quorumlab.mode_config": "ConfigError",
}

# package -> the extra that brings it: only some verbs need these
EXTRAS = {
    "kazoo": "zk",
    "pandas": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
    "resvg_py": "png",
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
    if told := os.environ.get(COMPLETE):  # a shell asks, for which `completion` wrote a script
        from click.shell_completion import shell_complete

        return shell_complete(root(), {}, "quorumlab", COMPLETE, told)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an ASCII terminal gets what it can show
            stream.reconfigure(errors="backslashreplace")
    try:
        args = _understood(given)
        code: int = args if isinstance(args, int) else args.run(args)
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


def _understood(given: list[str]) -> SimpleNamespace | int:
    """Or the exit code, where help was asked for, or is needed."""
    try:
        args = parse(root(), given or ["--help"])
    except click.exceptions.Exit as stop:
        return stop.exit_code if given else USAGE
    except click.UsageError as error:
        raise UsageError(refusal(error)) from error
    if not __debug__:
        raise UsageError("assertions are part of the protocol; do not use -O")
    return args


def _fail(text: str, code: int = ERROR) -> int:
    colour = False if os.environ.get("NO_COLOR") else None
    click.echo(f"{click.style('quorumlab:', fg='red', bold=True)} {text}", err=True, color=colour)
    return code


def _known_errors() -> tuple[type[Exception], ...]:
    """An error of a module that nobody has imported cannot have been raised."""
    there = {module: name for module, name in ERRORS.items() if module in sys.modules}
    return (Failed, *(getattr(sys.modules[module], name) for module, name in there.items()))


def _drop_output() -> None:
    from quorumlab.output import drop_what_is_buffered

    drop_what_is_buffered(sys.stdout)


def root() -> Verbs:
    command = Verbs(_ABOUT, commands_of(VERBS))
    return click.version_option(__version__, message="quorumlab %(version)s")(command)


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
