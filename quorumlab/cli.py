"""The `quorumlab` command: which verbs there are, and how each error reaches the user.

Exit codes: 0 fine, 1 error, 2 usage, 3 unhealthy, 4 a check was violated, 5 verdict unknown.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

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
    "bench": "bench",
    "demo": "demo",
}


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(given)
    try:
        args = parser.parse_args(given)
    except SystemExit as stop:  # argparse has printed what is wrong, or the help
        return stop.code if isinstance(stop.code, int) else USAGE
    if not __debug__:
        print("quorumlab: assertions are part of the protocol; do not use -O", file=sys.stderr)
        return USAGE
    if "run" not in args:
        parser.print_help()
        return USAGE
    return _run(args)


def _run(args: argparse.Namespace) -> int:
    from jepsen_like.real.layout import ClusterError
    from quorum.storage import StorageError
    from quorumlab.config import ConfigError
    from quorumlab.verbs.common import Failed, UsageError

    try:
        code: int = args.run(args)
        return code
    except UsageError as error:
        print(f"quorumlab: {error}", file=sys.stderr)
        return USAGE
    except (ClusterError, ConfigError, Failed, StorageError) as error:
        print(f"quorumlab: {error}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away: `quorumlab … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    from quorumlab import __version__

    parser = argparse.ArgumentParser(
        prog="quorumlab",
        description="Kafka-protocol clusters on a self-managed metadata quorum.",
    )
    parser.add_argument("--version", action="version", version=f"quorumlab {__version__}")
    verbs = parser.add_subparsers(metavar="VERB")
    wanted = next((word for word in given if not word.startswith("-")), None)
    modules = [VERBS[wanted]] if wanted in VERBS else dict.fromkeys(VERBS.values())
    for name in modules:
        module = importlib.import_module(f"quorumlab.verbs.{name}")
        add = getattr(module, "add_parsers", None) or module.add_parser
        add(verbs)
    return parser
