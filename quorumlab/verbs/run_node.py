"""`quorumlab node`: one node in the foreground, until a signal or its own end.

What it says goes to stdout, one line an event behind the time. However it ends, the last line says
why, and an exit code other than 0 tells that it was no orderly stop.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

from quorum.core.effects import Stop
from quorum.core.storage import StorageError
from quorum.node.listening import CannotListen
from quorumlab.arguments import Failed
from quorumlab.config import ConfigError, NodeConfig, load
from quorumlab.node import Node
from quorumlab.verbs.format import first_voters, format_node, released

__all__ = ["run"]


def run(args: SimpleNamespace) -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[_ToStdout()])
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
    config = load(args.config, os.environ)
    if args.format_as:
        voters = first_voters(args.initial_controllers, config)
        first = released(args.release_version)
        format_node(config, args.format_as, ignore_formatted=True, voters=voters, first=first)
        # A directory that was formatted already must belong to that cluster, too.
        config = replace(config, values={**config.values, "cluster.id": args.format_as})
    try:
        return asyncio.run(_run(config, args.seed))
    except (ConfigError, StorageError):
        raise
    except Exception as error:
        logging.getLogger("quorumlab").critical("node %d fails", config.node_id, exc_info=error)
        raise Failed(
            f"node {config.node_id} stopped on a bug, {type(error).__name__}: {error}; its log has "
            "the traceback. What it acknowledged is on its disk: it may be started again"
        ) from error


async def _run(config: NodeConfig, seed: int | None) -> int:
    _say(f"node {config.node_id} starts as {','.join(sorted(config.roles))}, pid {os.getpid()}")
    for warning in config.warnings:
        _say(f"warning: {warning}")
    try:
        async with Node(config, _say, seed) as node:
            _stop_on_signals(node)
            stop = await node.run()
    except CannotListen as error:
        from jepsen_like.real.free_ports import holder_of  # a node that listens needs none of it

        holder = holder_of(error.port)
        raise ConfigError(f"{error}: {holder}" if holder else str(error)) from error
    return _farewell(stop)


def _stop_on_signals(node: Node) -> None:
    """A second Ctrl-C does not wait for the controllers' consent."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        loop.add_signal_handler(
            signal.SIGINT, node.driver.stop, "a second interrupt, no orderly stop", 1
        )
        node.begin_shutdown()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, node.begin_shutdown)


def _farewell(stop: Stop) -> int:
    _say(f"stopped: {stop.reason}")
    if stop.exit_code:
        print(f"quorumlab: {stop.reason}", file=sys.stderr)
    return stop.exit_code


# --- the log --------------------------------------------------------------------------------


def _say(line: str) -> None:
    """Writes the line at once, for several threads do. A log that cannot be written stops no node:
    its disk may be full, or its reader gone."""
    stamped = f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}\n"
    with suppress(OSError):
        os.write(sys.stdout.fileno(), stamped.encode(errors="backslashreplace"))


class _ToStdout(logging.Handler):
    """Prints lines of modules that know no node: the wire's, asyncio's, aiohttp's."""

    _PREFIXES: Mapping[int, str] = {logging.DEBUG: "", logging.INFO: ""}

    def emit(self, record: logging.LogRecord) -> None:
        prefix = self._PREFIXES.get(record.levelno, f"{record.levelname.lower()}: ")
        _say(prefix + self.format(record))
